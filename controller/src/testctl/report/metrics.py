# SPDX-License-Identifier: Apache-2.0
"""The few metrics of a point that tables show, in one number for all its flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl.core.point import POINT_WIDE, is_background
from testctl.core.units import show_metric
from testctl.results import RunPoint

KEY_METRICS = (
    ("throughput_bps", "throughput"),
    ("saturation", "saturation"),
    ("stability_cv_10ms", "cv 10 ms"),
    ("stall_count", "stalls"),
    ("stall_longest_ms", "longest stall"),
    ("retransmission_timeouts", "timeouts"),
    ("packets_lost", "lost"),
    ("retransmissions", "retrans."),
    ("latency_p99_us", "latency p99"),
)
"""Metrics of the tables of points: those of them that the run has, with a short heading."""

UNKNOWN = show_metric("", None)

_SUMMED = frozenset({"stall_count", "retransmission_timeouts", "retransmissions", "packets_lost"})
_TOGETHER = {"throughput_bps": "total_throughput_bps", "saturation": "total_saturation"}
"""What of several flows together is a metric of the point: bytes of all over the time of all."""


def one_number(point: RunPoint, metric: str) -> float | None:
    """A metric of a point in one number: of all flows together, their sum, or the greatest of them.

    None when it is not known of every flow.
    """
    of_flows = _of_flows(point)
    wide = point.metrics.get(POINT_WIDE, {})
    together = _TOGETHER.get(metric, metric)
    if together in wide and (len(of_flows) != 1 or metric not in of_flows[0]):
        values = [wide[together]]
    else:
        values = [values.get(metric) for values in of_flows]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if not numbers or len(numbers) < len(values):
        return None
    return sum(numbers) if metric in _SUMMED else max(numbers)


def flow_names(point: RunPoint) -> list[str]:
    """The flows that the plan has."""
    return [name for name in point.metrics if name != POINT_WIDE and not is_background(name)]


def _of_flows(point: RunPoint) -> list[Mapping[str, Any]]:
    """The metrics of each flow that the plan has."""
    return [point.metrics[name] for name in flow_names(point)]


def number_of(point: RunPoint, metric: str, flow: str) -> float | None:
    """A metric of a flow as a number; of all flows together where `flow` is ""."""
    if not flow:
        return one_number(point, metric)
    value = point.metrics.get(flow, {}).get(metric)
    return float(value) if isinstance(value, int | float) else None


def meaning(metric: str) -> str:
    if metric in _TOGETHER:
        return f"{metric}; of several flows {_TOGETHER[metric]}, all bytes over all time"
    return f"{metric}, {'sum of' if metric in _SUMMED else 'greatest of'} all flows"


def metric_table(point: RunPoint, expected: Iterable[str] = ()) -> dict[str, Any]:
    """All metrics of a point: {"flows": [name], "rows": [[metric, {"value", "shown", "text"} of each flow]]}.

    Metrics of `places` come first, the others by their names.
    """
    flows = list(point.metrics)
    order = places(expected)
    there = {metric for values in point.metrics.values() for metric in values}
    names = sorted(there, key=lambda name: (order.get(name, len(order)), name))
    rows = [[name, *(_cell(name, point.metrics[flow].get(name)) for flow in flows)] for name in names]
    return {"flows": ["all" if flow == POINT_WIDE else flow for flow in flows], "rows": rows}


def metric_texts(point: RunPoint, expected: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """(flow, metric, value with its unit), flow by flow: what of `places` was measured."""
    order = places(expected)
    for flow, values in point.metrics.items():
        yield from ((flow, name, show_metric(name, values[name])) for name in order if values.get(name) is not None)


def _cell(metric: str, value: float | str | None) -> dict[str, Any]:
    number = float(value) if isinstance(value, int | float) else None
    return {"value": number, "shown": show_metric(metric, value), "text": isinstance(value, str)}


NAMED = 3
"""Flows of a point whose values stand in a cell with the names of the flows; of more the least and the greatest."""


@dataclass(frozen=True)
class Column:
    """A metric in the tables of points: one number for all flows, or with `each` what each flow has."""

    metric: str
    heading: str
    each: bool = False

    @property
    def meaning(self) -> str:
        return f"{self.metric}, which the plan expects something of; each flow" if self.each else meaning(self.metric)

    def cell(self, point: RunPoint, named: bool = True) -> tuple[float | None, str]:
        """(the number by which a table is sorted, the text shown); of few flows with their names if `named`."""
        if not self.each:
            value = one_number(point, self.metric)
            return value, show_metric(self.metric, value)
        wide = point.metrics.get(POINT_WIDE, {})
        flows = [wide] if self.metric in wide else _of_flows(point)
        values = [of.get(self.metric) for of in flows]
        texts = [show_metric(self.metric, value) for value in values]
        if 1 < len(flows) <= NAMED and len(set(texts)) > 1:
            return self._of_few(flow_names(point) if named else [], values, texts)
        numbers = sorted(float(value) for value in values if isinstance(value, int | float))
        if numbers and len(numbers) == len(values):
            ends = dict.fromkeys(show_metric(self.metric, value) for value in (numbers[0], numbers[-1]))
            return numbers[0], " … ".join(ends)
        return None, ", ".join(dict.fromkeys(texts))

    def _of_few(self, names: Sequence[str], values: Sequence[Any], texts: Sequence[str]) -> tuple[float | None, str]:
        """The values of few flows, with their names if they are given; a unit that all have stands once."""
        units = {text.partition(" ")[2] for text in texts}
        unit = units.pop() if len(units) == 1 else ""
        short = [text.removesuffix(f" {unit}") if unit else text for text in texts]
        least = min((float(value) for value in values if isinstance(value, int | float)), default=None)
        shown = map(" ".join, zip(names, short, strict=True)) if names else short
        return least, ", ".join(shown) + (f" {unit}" if unit else "")


def expected_metrics(summary: Mapping[str, Any]) -> list[str]:
    """The metrics that a run's plan expects something of, each once, in the plan's order."""
    entries = [*(summary.get("expectations") or []), *(summary.get("claims") or [])]
    return [*dict.fromkeys(metric for item in entries if (metric := item.get("metric")))]


def places(expected: Iterable[str]) -> dict[str, int]:
    """Metric -> its place wherever metrics are listed: those that a plan expects something of, then the key metrics."""
    keys = [name for metric, _ in KEY_METRICS for name in (_TOGETHER.get(metric, metric), metric)]
    return {name: place for place, name in enumerate(dict.fromkeys([*expected, *keys]))}


def columns(
    points: Sequence[RunPoint], summary: Mapping[str, Any], keys: Sequence[tuple[str, str]] = KEY_METRICS
) -> list[Column]:
    """The columns of a table of points: what the plan expects something of, then the key metrics that these have.

    A key metric without a value at any point has no column.
    """
    there = {metric for point in points for values in point.metrics.values() for metric in values}
    found = [Column(metric, heading) for metric, heading in keys if metric in there]
    shown = {column.metric for column in found}
    expected = expected_metrics(summary)
    several = any(len(point.metrics.keys() - {POINT_WIDE}) > 1 for point in points)
    for metric in expected:
        if metric in there and (several or metric not in shown):
            found.append(Column(metric, f"{metric}, each" if metric in shown else metric, each=True))
    known = [
        column
        for column in found
        if column.metric in expected or any(column.cell(point)[1] != UNKNOWN for point in points)
    ]
    order = places(expected)
    return sorted(known, key=lambda column: (order[column.metric], column.each))
