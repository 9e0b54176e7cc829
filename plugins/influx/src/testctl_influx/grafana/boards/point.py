# SPDX-License-Identifier: Apache-2.0
"""One point (or a few) of a run: its series, its stalls, all its metrics."""

from __future__ import annotations

from testctl.curves import curves
from testctl.metrics import metrics

from testctl_influx.grafana.influxql import chosen, named_by, over_time, table, values_of
from testctl_influx.grafana.metrics import metric_table
from testctl_influx.grafana.model import Annotation, Board, Json, Panel, Row

_WHERE = chosen("plan", "run", "point", "flow")


def _series(title: str, name: str, values: dict[str, str], unit: str, *more: str) -> Panel:
    """Values of a series, {field: function over the bins of a step}, drawn as its curve's spec says.

    A line for each point, flow (unless the curve is of all flows) and tag `more`.
    """
    spec = curves()[name].spec
    lines = ["point", *([] if spec.whole else ["flow"]), *more]
    picked = [f'{function}("{field}") AS "{field}"' for field, function in values.items()]
    query = over_time(picked, f"series_{name}", f"{_WHERE} AND {chosen('bin')}", lines)
    look: Json = {"custom": {"lineInterpolation": "stepAfter" if spec.shape == "steps" else "linear"}}
    if spec.zero:
        look["min"] = 0
    alias = named_by(*lines, field=len(values) > 1)
    return Panel(title, query, alias, unit=unit, width=12, height=8, interval="${bin:raw}", defaults=look)


def _rows() -> list[Row]:
    asked = ["point::tag", "verdict::tag", "reason", "tuples", "digest"]
    stalls = ["point::tag", "flow::tag", "cause::tag", "ended_by::tag", "length_ms", "proof"]
    return [
        Row("Tuples", [table("points", asked, "points", chosen("plan", "run", "point"), height=5)]),
        Row(
            "Over time (zoom in to the run's first seconds)",
            [
                _series("throughput", "throughput", {"bps": "mean"}, "bit/s"),
                _series("window", "cwnd", {"cwnd": "mean", "unacked": "mean"}, "packets", "conn"),
                _series("round trips", "rtt", {"rtt_us": "mean", "rtt_us_max": "max"}, "µs"),
                _series("one-way latency", "latency", {"latency_us": "mean", "latency_us_max": "max"}, "µs"),
                _series("completion times", "fct", {"fct_us": "mean", "fct_us_max": "max"}, "µs"),
                _series("fairness", "fairness", {"jain": "mean"}, ""),
                _series("marks", "marks", {"ce_share": "mean"}, ""),
                _series("queues", "queue", {"bytes": "max"}, "B", "place"),
                table("stalls", stalls, "stalls", _WHERE, width=12, height=8),
            ],
        ),
        Row("Metrics", [metric_table(metric.spec) for metric in metrics().values()], closed=True),
    ]


BOARD = Board(
    "testctl: a point",
    "The times of a point's series are its run's start plus the testbed's time: virtual time in the lab.",
    _rows,
    [
        values_of("plan", "points", "plan"),
        values_of("run", "points", "run", "plan"),
        values_of("point", "points", "point", "plan", "run", every=True),
        values_of("flow", "metrics", "flow", "plan", "run", every=True),
        values_of("bin", "series_throughput", "bin", "plan", "run"),
    ],
    [
        Annotation(
            "stalls", f'SELECT "proof", "cause"::tag FROM "stalls" WHERE {_WHERE} AND $timeFilter', "proof", "cause"
        )
    ],
)
