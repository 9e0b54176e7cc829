# SPDX-License-Identifier: Apache-2.0
"""Which figures of a sweep are drawn: those that a plan declares, one that is asked for, or a default one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.charts.sweep_data import Sweep
from testctl.core.point import POINT_WIDE
from testctl.plan import FigureSpec
from testctl.plan.diagnostics import suggest
from testctl.plan.sweep_figures import FLOW, MAX_BY, MAX_X, SWEEP_KINDS, most_values, needed_fields, title_of
from testctl.report.factors import ABSENT, Factor, factors
from testctl.report.figure_spec import specs_of, written_value
from testctl.report.sweep import counted_number, flows_of, numbers_of, sweep_of
from testctl.results import Run, RunPoint
from testctl.system.text import first_of

_NAMED = 12
"""Names in an error."""


def asked_spec(points: Sequence[RunPoint], kind: str, metric: str, **given: str) -> FigureSpec:
    """A figure that no plan declares.  given: x, by, facet ("entity.parameter", or "flow": each; "" for none) and flow.

    Raises PlanError for what these points have not, naming what they have.
    """
    if kind not in SWEEP_KINDS:
        raise PlanError(f"kind: want one of {', '.join(SWEEP_KINDS)}; got {kind!r}")
    named = {name: given.get(name, "") for name in ("x", "by", "facet")}
    for name, key in named.items():
        if not key and name in needed_fields(kind):
            raise PlanError(f"{name}: want a parameter that is swept, of {_some(swept_keys(points))}; got none")
    if not any(isinstance(of.get(metric), int | float) for point in points for of in point.metrics.values()):
        names = sorted({name for point in points for values in point.metrics.values() for name in values})
        raise PlanError(f"metric: want one that the points have{suggest(metric, names)}; got {metric!r}")
    flow = given.get("flow", "")
    if FLOW in named.values() and not any(
        metric in of for p in points for name, of in p.metrics.items() if name != POINT_WIDE
    ):
        raise PlanError(
            f"metric: want one of a flow where a figure has one for each; got {metric!r}, of the whole point"
        )
    flows = dict.fromkeys(name for point in points for name in point.metrics if name != POINT_WIDE)
    if flow and flow not in flows:
        raise PlanError(f"flow: want one of {_some(list(flows))}; got {flow!r}")
    for name, key in named.items():
        count = len(
            flows_of(points) if key == FLOW else {written_value(point, key, ABSENT) for point in points} if key else ()
        )
        if key and count < 2:
            raise PlanError(f"{name}: want a parameter that is swept, of {_some(swept_keys(points))}; got {key!r}")
        if count > (most := most_values(kind, name)):
            raise PlanError(f"{name}: want a parameter of at most {most} values; got {key} with {count}")
        if same := next((other for other in named if other != name and key and named[other] == key), ""):
            raise PlanError(f"{name}: want another parameter than {same}; got {key!r}")
    x, by, facet = named.values()
    return FigureSpec(title_of({"metric": metric, **named}), kind, flow=flow, metric=metric, x=x, by=by, facet=facet)


def swept_keys(points: Sequence[RunPoint]) -> list[str]:
    """The parameters that differ between points, as a figure names them."""
    return [factor.key for factor in factors(points) if factor.key != "repeat"]


def _some(names: Sequence[str]) -> str:
    return first_of(names, _NAMED) or "none"


def default_spec(points: Sequence[RunPoint], summary: Mapping[str, Any]) -> FigureSpec | None:
    """For a plan without a figure of these kinds: what it expects something of, else throughput, over swept parameters.

    None without a parameter that is swept, or where no number differs between points.
    """
    expected = [item.get("metric", "") for item in summary.get("expectations") or ()]
    metrics = dict.fromkeys([*expected, "throughput_bps", "total_throughput_bps"])
    values = {name: {counted_number(point, name, "") for point in points} - {None} for name in metrics}
    metric = next((name for name, of in values.items() if len(of) > 1), "")
    swept = sorted((factor for factor in factors(points) if factor.key != "repeat"), key=_rank)
    xs = [factor for factor in swept if len(factor.values) <= MAX_X]
    if not metric or not xs:
        return None
    flows = any(len([flow for flow in point.metrics if metric in point.metrics[flow]]) > 1 for point in points)
    other = next((factor.key for factor in swept if factor is not xs[0] and len(factor.values) <= MAX_BY), "")
    by = other or (FLOW if flows and len(flows_of(points)) <= MAX_BY else "")
    title = title_of({"metric": metric, "x": xs[0].key, "by": by, "facet": ""})
    return FigureSpec(title, "metric", metric=metric, x=xs[0].key, by=by)


def _rank(factor: Factor) -> tuple[int, bool]:
    """Most values first; of as many, numbers first."""
    return -len(factor.values), not numbers_of(factor.values)


def sweeps_of_run(run: Run) -> list[Sweep]:
    """Those that the plan of a run declares; of a plan without, the default one.  Raises PlanError."""
    declared = [spec for spec in specs_of(run) if spec.kind in SWEEP_KINDS]
    default = None if declared else default_spec(run.points, run.summary)
    return [sweep_of(spec, run.points) for spec in (declared or ([default] if default else []))]
