# SPDX-License-Identifier: Apache-2.0
"""The change of a metric between two runs, and whether it is better or worse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from testctl.core.units import exact_metric
from testctl.metrics import metric_names
from testctl.report.metrics import places

Direction = Literal["better", "worse", "other"]
Value = float | str | None
REQUESTS = (
    "completion_time_s", "fct_all_mean_us", "fct_all_p99_us", "query_mean_us", "request_rate", "deadline_miss_rate",
)  # fmt: skip
"""What decides, with the key metrics, whether a point is better or worse: how long transfers and requests took."""
_STALLS = ("stall_count", "stall_time_s", "stall_longest_ms")
"""Stalls of all causes; of a single cause they are named stall_CAUSE_count and so on."""
_RANK = {"pass": 0, "skip": 1, "fail": 2, "invalid": 3, "broken": 4}


@dataclass(frozen=True)
class Move:
    """A metric of a point that differs between two runs.

    relative   (b - a) / |a|; None if that is not a number
    direction  by the metric's spec; "other" if it prefers neither, or one value is None
    """

    flow: str
    metric: str
    a: Value
    b: Value
    relative: float | None
    direction: Direction

    def to_json(self) -> dict[str, Any]:
        return {
            "flow": self.flow, "metric": self.metric, "a": self.a, "b": self.b,
            "relative": self.relative, "direction": self.direction,
        }  # fmt: skip


@cache
def _better() -> Mapping[str, str]:
    return {name: info.better for name, info in metric_names().items()}


def prefers(metric: str) -> str:
    """ "higher", "lower" or "none"; "none" also for a metric that no longer exists."""
    return _better().get(metric, "none")


def direction(metric: str, change: float) -> Direction:
    wanted = prefers(metric)
    if change == 0 or math.isnan(change) or wanted == "none":
        return "other"
    return "better" if (change > 0) == (wanted == "higher") else "worse"


def verdict_direction(a: str, b: str) -> Direction:
    """From best to worst: pass, skip, fail, and verdicts of points that could not be measured."""
    change = _RANK.get(b, 0) - _RANK.get(a, 0)
    return "worse" if change > 0 else "better" if change < 0 else "other"


class Changed(Protocol):
    """A metric of a flow that changed."""

    @property
    def flow(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def direction(self) -> Direction: ...


def decided(verdict: Direction, changed: Sequence[Changed], expected: Sequence[str]) -> Direction:
    """The direction of a point: worse if its verdict or a metric that decides is, else better if one of them is.

    The expected metrics decide, the key metrics and REQUESTS.  Where of a flow's stalls only those changed in which the
    application had nothing to send, they decide nothing unless they are expected.
    """
    causes = [(change.flow, change.metric.startswith("stall_application_")) for change in changed
              if change.metric.startswith("stall_") and change.metric not in _STALLS]  # fmt: skip
    own = {flow for flow, _ in causes if (flow, False) not in causes}
    deciding = {*places(expected), *REQUESTS}
    directions = {
        verdict,
        *(
            change.direction
            for change in changed
            if change.metric in deciding
            and (change.metric in expected or change.metric not in _STALLS or change.flow not in own)
        ),
    }
    return "worse" if "worse" in directions else "better" if "better" in directions else "other"


def relative(a: float, b: float) -> float | None:
    """(b - a) / |a|; None for a = 0."""
    return (b - a) / abs(a) if a else None


def move(flow: str, metric: str, a: Value, b: Value) -> Move:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return Move(flow, metric, a, b, relative(a, b), direction(metric, b - a))
    return Move(flow, metric, a, b, None, "other")


ORDER: dict[Direction, int] = {"worse": 0, "better": 1, "other": 2}
"""The order of directions wherever findings are listed."""


def ranked(moves: Iterable[Move], expected: Iterable[str] = ()) -> list[Move]:
    """Expected metrics, then the key metrics; of the others worse before better, the greatest relative change first."""
    first = places(expected)
    return sorted(
        moves,
        key=lambda move: (first.get(move.metric, len(first)), ORDER[move.direction], -abs(move.relative or 0)),
    )


def moves(a: Mapping[str, Mapping[str, Value]], b: Mapping[str, Mapping[str, Value]], least: float) -> tuple[Move, ...]:
    """Metrics of both whose values differ, by more than the share `least` if the values are numbers."""
    moved = [
        move(flow, name, value, b[flow][name])
        for flow, values in a.items()
        for name, value in values.items()
        if name in b.get(flow, {}) and b[flow][name] != value
    ]
    return tuple(move for move in moved if move.relative is None or abs(move.relative) > least)


def change_words(change: float | None) -> str:
    """ "+1.25 %"."""
    if change is None:
        return ""
    return f"{change * 100:+.3g} %" if abs(change) < 10 else f"x {change + 1:.3g}"


def value_words(metric: str, value: Value) -> str:
    """A value with its unit, six digits: "979.805 Mb/s"."""
    return "none" if value is None else exact_metric(metric, value)
