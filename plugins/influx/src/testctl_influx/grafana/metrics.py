# SPDX-License-Identifier: Apache-2.0
"""Panels of metrics, from their specs: unit, help and which way is better."""

from __future__ import annotations

from testctl.metrics import MetricInfo, MetricSpec, metric_names
from testctl.report.metrics import KEY_METRICS

from testctl_influx.grafana.influxql import chosen, named_by, over_time, table
from testctl_influx.grafana.model import Json, Panel
from testctl_influx.measurements import SERIES_OF_RUNS

_NO_CHANGE = 1e-9
"""A change that is less, either way, is the rounding of a mean."""

_BETTER = {"higher": "; more is better", "lower": "; less is better", "none": ""}


def key_metrics() -> list[MetricInfo]:
    """The metrics that the report's tables show."""
    return [metric_names()[name] for name, _ in KEY_METRICS]


def metric_over_time(info: MetricInfo, by: str) -> Panel:
    """A metric's mean over the chosen plan's points and flows at each run, a line for each value of the tag `by`."""
    query = over_time([f'mean("{info.name}") AS "{info.name}"'], "metrics", chosen("plan", "testbed", "flow"), [by])
    help_ = info.help + _BETTER[info.better]
    return Panel(info.name, query, f"{by} {named_by(by)}", unit=info.unit, help=help_, defaults=_POINTS)


def metric_change(info: MetricInfo) -> Panel:
    """The difference of a metric's mean from the previous run of its series; red if it is worse."""
    query = over_time(
        [f'difference(mean("{info.name}")) AS "{info.name}"'], "metrics", chosen("plan", "testbed"), SERIES_OF_RUNS
    )
    below, above = {"higher": ("red", "green"), "lower": ("green", "red"), "none": ("blue", "blue")}[info.better]
    steps = [
        {"color": below, "value": None},
        {"color": "text", "value": -_NO_CHANGE},
        {"color": above, "value": _NO_CHANGE},
    ]
    look: Json = {
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "thresholds"},
        "custom": {
            "drawStyle": "bars",
            "fillOpacity": 60,
            "lineWidth": 0,  # a line at 0 would have the colour above it
            "axisCenteredZero": True,
            "gradientMode": "scheme",
        },
    }
    what = "difference from the previous run of the plan on its testbed, with its options"
    help_ = f"{info.help}: {what}{_BETTER[info.better]}"
    return Panel(f"{info.name}, change", query, named_by(*SERIES_OF_RUNS), unit=info.unit, help=help_, defaults=look)


def metric_table(spec: MetricSpec) -> Panel:
    """All values of a metric at the chosen points, including text."""
    names = ["point::tag", *(["flow::tag"] if spec.scope == "flow" else []), *(info.name for info in spec.values)]
    flows = ["flow"] if spec.scope == "flow" else []
    return table(spec.name, names, "metrics", chosen("plan", "run", "point", *flows), height=5, help=spec.help)


_POINTS: Json = {"custom": {"drawStyle": "line", "showPoints": "always", "pointSize": 5, "spanNulls": True}}
