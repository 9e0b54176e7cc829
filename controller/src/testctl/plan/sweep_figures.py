# SPDX-License-Identifier: Apache-2.0
"""Checks the fields of a figure that shows a metric of many points: kinds metric, cdf, box and heatmap."""

from __future__ import annotations

from collections.abc import Mapping as MappingOf

from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import show, suggest
from testctl.plan.fields import Fields
from testctl.plan.model import Condition
from testctl.plan.registry import MetricInfo
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.tuples import OVERRIDE
from testctl.plan.yaml_reader import Mapping, Node, Scalar

HEATMAP = "heatmap"
SWEEP_KINDS = ("metric", "cdf", "box", HEATMAP)
SWEEP_FIELDS = ("metric", "x", "by", "facet")
CURVES = ("cwnd", "rtt", "queue")
"""Kinds that show the curve of that name."""
TIME_KINDS = ("throughput", "connections", *CURVES, "sequence", "time_sequence")
TIME_FIELDS = ("bin", "from", "to")
"""Fields of the kinds that show time only."""
FLOW = "flow"
"""In place of a parameter: each flow of a point, which gives the point a value for each."""
MAX_X, MAX_BY, MAX_FACET = 60, 8, 12
"""Values that a parameter may have for a figure to be read: along x, as lines (one colour each), as panels."""
MAX_DOWN = MAX_X
"""The same of the rows of a heatmap."""


def most_values(kind: str, name: str) -> int:
    """Values that the parameter of a figure's field may have."""
    by = MAX_DOWN if kind == HEATMAP else MAX_BY
    return {"x": MAX_X, "by": by, "facet": MAX_FACET}[name]


def kind_of_figure(node: Node) -> str:
    """The kind as written; "" where none is."""
    kind = node.get("kind") if isinstance(node, Mapping) else None
    return kind.text if isinstance(kind, Scalar) else ""


def needed_fields(kind: str) -> tuple[str, ...]:
    """Fields without which a figure of the kind can't be drawn."""
    of_sweeps = {"metric": ("metric", "x"), "box": ("metric", "x"), "cdf": ("metric",), HEATMAP: ("metric", "x", "by")}
    return of_sweeps.get(kind, ("title",))


def unused_fields(kind: str) -> tuple[str, ...]:
    """Fields that a figure of the kind has no use for."""
    if kind in REQUEST_KINDS:
        return (*TIME_FIELDS, *(name for name in SWEEP_FIELDS if name != "by"))
    if kind not in SWEEP_KINDS:
        return SWEEP_FIELDS
    return (*TIME_FIELDS, "x") if kind == "cdf" else TIME_FIELDS


def check_fields(fields: Fields, kind: str) -> None:
    """Problems for fields that the kind has no use for."""
    for name in unused_fields(kind):
        if name in fields.nodes:
            kinds = (
                TIME_KINDS
                if name in TIME_FIELDS
                else [kind for kind in (*REQUEST_KINDS, *SWEEP_KINDS) if name not in unused_fields(kind)]
            )
            text = f"want it in a figure of kind {', '.join(kinds)}; got kind {kind}"
            fields.problems.add(fields.nodes[name].place, f"{fields.who}{name}: {text}")


def read_sweep(
    fields: Fields,
    kind: str,
    reader: Reader | None,
    condition: Condition,
    metrics: MappingOf[str, MetricInfo] | None,
) -> dict[str, str]:
    """The metric and the parameters as written, "" where none is named.

    condition  the figure's `when`: values that it leaves out do not count
    reader, metrics  None: what the fields name is not checked
    """
    sweep = {name: fields.text(name) for name in SWEEP_FIELDS}
    if metrics is not None and sweep["metric"]:
        metric = sweep["metric"]
        place = fields.nodes["metric"].place
        if metric not in metrics:
            fields.problems.add(place, f"{fields.who}no metric named {show(metric)}{suggest(metric, metrics)}")
        elif metrics[metric].text:
            fields.problems.add(place, f"{fields.who}metric: want one that is a number; got {metric}, which is text")
    before: dict[str, str] = {}
    for name in ("x", "by", "facet"):
        key = sweep[name]
        if key and key in before:
            fields.refuse(fields.nodes[name], name, f"another parameter than {before[key]}")
        elif key == FLOW and reader is not None:
            _check_flows(fields, name, most_values(kind, name), reader)
        elif key and reader is not None:
            _check_swept(fields, name, most_values(kind, name), reader, condition)
        before.setdefault(key, name)
    return sweep


def title_of(sweep: MappingOf[str, str]) -> str:
    """The title of a figure without one: "jain over switch.delay by switch.buffer"."""
    prepositions = {"x": "over", "by": "by", "facet": "for each"}
    return " ".join([sweep["metric"], *(f"{word} {sweep[name]}" for name, word in prepositions.items() if sweep[name])])


def _check_swept(fields: Fields, name: str, most: int, reader: Reader, condition: Condition) -> None:
    node, who = fields.nodes[name], f"{fields.who}{name}"
    index = reader.tuple_of(node, who) if isinstance(node, Scalar) else None
    if index is None:
        return
    assignment = reader.assignments[index]
    levels = condition.get(index, range(len(assignment.texts)))
    wrong = ""
    if len(levels) == 1 and assignment.rank < OVERRIDE:
        always = assignment.texts[next(iter(levels))]
        wrong = f"want a parameter with several values; got {assignment.key}, which is always {always}"
    elif len(levels) > most:
        wrong = f"want a parameter of at most {most} values; got {assignment.key} with {len(levels)}"
    if wrong:
        fields.problems.add(node.place, f"{who}: {wrong}")


def _check_flows(fields: Fields, name: str, most: int, reader: Reader) -> None:
    count = len(reader.names.flows)
    if count > most:
        fields.refuse(fields.nodes[name], name, f"a plan of at most {most} flows; this one has {count}")
