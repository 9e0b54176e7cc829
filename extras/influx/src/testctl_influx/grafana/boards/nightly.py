# SPDX-License-Identifier: Apache-2.0
"""Changes between runs: verdicts, digests, and each metric compared with the previous run."""

from __future__ import annotations

from testctl.metrics import metrics

from testctl_influx.grafana.influxql import chosen, over_time, rows_of, values_of
from testctl_influx.grafana.metrics import key_metrics, metric_change
from testctl_influx.grafana.model import Board, Panel, Row


def _rows() -> list[Row]:
    plan = chosen("plan")
    bad = [f'sum("{verdict}") AS "{verdict}"' for verdict in ("fail", "invalid", "broken")]
    changes = [
        Row(
            f"{metric.spec.name}: {metric.spec.help}",
            [metric_change(info) for info in metric.spec.values if not info.text and info.better != "none"],
            closed=True,
        )
        for metric in metrics().values()
    ]
    return [
        Row(
            "Verdicts",
            [
                Panel("points that are bad", [over_time(bad, "runs", plan, ["plan"])], width=12, defaults=_BARS),
                Panel(
                    "expectations that failed",
                    [over_time(['sum("failed") AS "failed"'], "expectations", plan, ["plan"])],
                    width=12,
                    defaults=_BARS,
                ),
                Panel(
                    "digests: in the lab, the same unless something changed",
                    [rows_of(["plan::tag", "run::tag", "digest", "commit"], "runs", plan)],
                    "table",
                    width=24,
                ),
            ],
        ),
        Row("The report's metrics, compared with the previous run", [metric_change(info) for info in key_metrics()]),
        *(row for row in changes if row.panels),
    ]


_BARS = {"custom": {"drawStyle": "bars", "fillOpacity": 80}}

BOARD = Board(
    "testctl: nightly runs",
    "Each metric's mean over a plan's points and flows, as the difference from the previous run.",
    _rows,
    [values_of("plan", "runs", "plan", every=True)],
)
