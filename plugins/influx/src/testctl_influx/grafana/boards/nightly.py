# SPDX-License-Identifier: Apache-2.0
"""Changes between runs: verdicts, digests, and each metric compared with the previous run."""

from __future__ import annotations

from testctl.metrics import metrics

from testctl_influx.grafana.influxql import chosen, named_by, over_time, table, values_of
from testctl_influx.grafana.metrics import key_metrics, metric_change
from testctl_influx.grafana.model import Board, Panel, Row
from testctl_influx.measurements import SERIES_OF_RUNS

_CHOSEN = chosen("plan", "testbed")
_DIGESTS = ["plan::tag", "testbed::tag", "options::tag", "run::tag", "digest", "commit"]


def _rows() -> list[Row]:
    title = "digests: in the lab, the same unless something changed"
    digests = table(title, _DIGESTS, "runs", _CHOSEN, height=7)
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
                _bars("points that are bad", "runs", "fail", "invalid", "broken"),
                _bars("expectations that failed", "expectations", "failed"),
                digests,
            ],
        ),
        Row("The report's metrics, compared with the previous run", [metric_change(info) for info in key_metrics()]),
        *(row for row in changes if row.panels),
    ]


def _bars(title: str, measurement: str, *fields: str) -> Panel:
    """Sums of fields at each run."""
    query = over_time([f'sum("{field}") AS "{field}"' for field in fields], measurement, _CHOSEN, SERIES_OF_RUNS)
    alias = named_by(*SERIES_OF_RUNS, field=len(fields) > 1)
    return Panel(title, query, alias, width=12, defaults={"custom": {"drawStyle": "bars", "fillOpacity": 80}})


BOARD = Board(
    "testctl: nightly runs",
    "Each metric's mean over a plan's points and flows, as the difference from the previous run.",
    _rows,
    [values_of("plan", "runs", "plan", every=True), values_of("testbed", "runs", "testbed", "plan", every=True)],
)
