# SPDX-License-Identifier: Apache-2.0
"""A plan's metrics over time, by the value of a parameter."""

from __future__ import annotations

from testctl.metrics import metrics

from testctl_influx.grafana.influxql import chosen, values_of
from testctl_influx.grafana.metrics import key_metrics, metric_over_time
from testctl_influx.grafana.model import Board, Row, Variable

_BY = "${by:raw}"


def _rows() -> list[Row]:
    rows = [Row("The report's metrics", [metric_over_time(info, _BY) for info in key_metrics()])]
    for metric in metrics().values():
        numbers = [info for info in metric.spec.values if not info.text]
        if numbers:
            title = f"{metric.spec.name}: {metric.spec.help}"
            rows.append(Row(title, [metric_over_time(info, _BY) for info in numbers], closed=True))
    return rows


BOARD = Board(
    "testctl: a plan over time",
    "Each metric of a plan at each run, its mean over all points that have the same value of a parameter.",
    _rows,
    [
        values_of("plan", "metrics", "plan"),
        values_of("testbed", "metrics", "testbed", "plan", every=True),
        Variable(
            "by",
            "parameter",
            f'SHOW TAG KEYS FROM "metrics" WHERE {chosen("plan")}',
            only=r"/^(cc|kernel|testbed|options|flow|verdict|.+\..+)$/",
            first="cc",
        ),
        values_of("flow", "metrics", "flow", "plan", "testbed", every=True),
    ],
)
