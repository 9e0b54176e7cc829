# SPDX-License-Identifier: Apache-2.0
"""Reads `figures`: what the report draws beside the points."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingOf

from testctl_agent.spec.units import Duration

from testctl.core.point import Point
from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.field_tables import FIGURE, MAX_TITLE
from testctl.plan.fields import Fields
from testctl.plan.model import DEFAULT_BIN_NS, FigureSpec
from testctl.plan.registry import MetricInfo
from testctl.plan.request_figures import REQUEST_KINDS
from testctl.plan.sweep_figures import (
    check_fields,
    kind_of_figure,
    needed_fields,
    read_sweep,
    title_of,
)
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, Sequence, parse, what

MAX_FIGURES = 20
MIN_BIN_NS = 1000


def read_figures(
    node: Node | None,
    problems: Problems,
    reader: Reader | None = None,
    metrics: MappingOf[str, MetricInfo] | None = None,
) -> tuple[FigureSpec, ...]:
    """The figures of a plan's `figures:`; faults go to `problems`.

    reader  knows the plan's tuples and flows; None: they are not checked (the plan of a run was, before it ran)
    metrics  those that a figure may show; None: any
    """
    if node is None:
        return ()
    if not isinstance(node, Sequence) or len(node.items) > MAX_FIGURES:
        got = f"{len(node.items)}" if isinstance(node, Sequence) else what(node)
        problems.add(node.place, f"figures: want a list of at most {MAX_FIGURES} figures; got {got}")
        return ()
    figures = [_figure(item, number, problems, reader, metrics) for number, item in enumerate(node.items, start=1)]
    return tuple(figure for figure in figures if figure is not None)


def figures_of(plan_text: str, file: str) -> tuple[FigureSpec, ...]:
    """The figures of a run's plan.  Raises PlanError."""
    root = parse(plan_text, file) if plan_text.strip() else None
    problems = Problems()
    figures = read_figures(root.get("figures") if isinstance(root, MappingNode) else None, problems)
    problems.check()
    return figures


def nothing_to_draw(figure: FigureSpec, points: Iterable[Point]) -> str:
    """Why a figure of these points, which meet its `when`, would be empty; "" if it would not."""
    shown = [flow for point in points for flow in point.flows if figure.flow in ("", flow.name)]
    if not shown:
        return "no point of the plan meets its `when`"
    if figure.kind in REQUEST_KINDS and not any(flow.asks for flow in shown):
        return f"want a flow with `requests` for kind {figure.kind}; got {figure.flow or 'none'}"
    most = max(flow.parallel for flow in shown if flow.name == shown[0].name)
    if figure.connection >= most:
        return f"connection: want one that the flow has, from 0 to {most - 1}; got {figure.connection}"
    return ""


def _figure(
    node: Node, number: int, problems: Problems, reader: Reader | None, metrics: MappingOf[str, MetricInfo] | None
) -> FigureSpec | None:
    before = len(problems.lines) + problems.more
    written = kind_of_figure(node)
    known = not written or written in FIGURE["kind"].schema["enum"]
    fields = Fields(node, f"figure {number}", FIGURE, problems, needed=needed_fields(written) if known else ())
    if not fields.ok:
        return None
    kind = fields.choice("kind", "throughput")
    if not known:
        return None
    check_fields(fields, kind)
    node_when = fields.nodes.get("when")
    condition = (reader.condition(node_when, f"{fields.who}when") or {}) if reader and node_when else {}
    sweep = read_sweep(fields, kind, reader, condition, metrics)
    title = fields.text("title") or title_of(sweep)
    if len(title) > MAX_TITLE and "title" in fields.nodes:
        fields.refuse(fields.nodes["title"], "title", f"at most {MAX_TITLE} characters")
    width_ns = _time(fields, "bin", DEFAULT_BIN_NS)
    if width_ns < MIN_BIN_NS:
        fields.refuse(fields.nodes["bin"], "bin", "at least 1us")
    start_ns, end_ns = _time(fields, "from", 0), _time(fields, "to", 0)
    if end_ns and end_ns <= start_ns:
        fields.refuse(fields.nodes["to"], "to", "a time after `from`")
    flow = fields.text("flow")
    if reader is not None and flow and flow not in reader.names.groups["flows"]:
        hint = suggest(flow, reader.names.groups["flows"])
        problems.add(fields.nodes["flow"].place, f"{fields.who}no flow named {show(flow)}{hint}")
    spec = FigureSpec(
        title=title,
        kind=kind,
        bin_ns=width_ns,
        flow=flow,
        connection=fields.integer("connection", 0),
        when=_when(fields, reader),
        from_ns=start_ns,
        to_ns=end_ns,
        **sweep,
        place=node.place,
        condition=condition,
    )
    return spec if len(problems.lines) + problems.more == before else None


def _time(fields: Fields, name: str, default: int) -> int:
    node = fields.nodes.get(name)
    if node is None:
        return default
    try:
        return int(Duration.parse(node.value if isinstance(node, Scalar) else what(node)))
    except ValueError as error:
        fields.problems.add(node.place, f"{fields.who}{name}: {error}")
        return default


def _when(fields: Fields, reader: Reader | None) -> dict[str, tuple[str, ...]]:
    node = fields.nodes.get("when")
    if node is None:
        return {}
    if not isinstance(node, MappingNode):
        if reader is None:
            fields.refuse(node, "when", "a mapping")
        return {}
    levels = {}
    for key, value in node.entries:
        items = value.items if isinstance(value, Sequence) else (value,)
        levels[key.text] = tuple(item.text for item in items if isinstance(item, Scalar))
        if reader is None and (len(levels[key.text]) < len(items) or not all(key.text.partition("."))):
            fields.problems.add(key.place, f"{fields.who}when: want ENTITY.PARAMETER: value or values")
    return levels
