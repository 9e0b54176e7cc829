# SPDX-License-Identifier: Apache-2.0
"""Runs and their verdicts."""

from __future__ import annotations

from testctl.results import VERDICTS

from testctl_influx.grafana.influxql import chosen, over_time, rows_of, values_of
from testctl_influx.grafana.model import Board, Panel, Row

_RUN = ("plan::tag", "run::tag")
_TO_POINT = {
    "links": [
        {
            "title": "this point",
            "url": "/d/testctl-point?var-plan=${__data.fields.plan}&var-run=${__data.fields.run}"
            "&var-point=${__data.fields.point}&time=${__data.fields.Time.numeric}&time.window=20000",
        }
    ]
}


def _rows() -> list[Row]:
    plan = chosen("plan")
    total = f'SELECT count("points") AS "runs" FROM "runs" WHERE {plan} AND $timeFilter'
    sums = ", ".join(f'sum("{verdict}") AS "{verdict}"' for verdict in VERDICTS)
    whole = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}, "colorMode": "value"}
    bars = {"custom": {"drawStyle": "bars", "stacking": {"mode": "normal"}, "fillOpacity": 80}}
    return [
        Row(
            "Runs",
            [
                Panel("runs", [total], "stat", width=4, height=6, options=whole),
                Panel(
                    "points by verdict",
                    [f'SELECT {sums} FROM "runs" WHERE {plan} AND $timeFilter'],
                    "stat",
                    width=20,
                    height=6,
                    options=whole,
                ),
                Panel(
                    "points by verdict, at each run",
                    [over_time([f'sum("{verdict}") AS "{verdict}"' for verdict in VERDICTS], "runs", plan)],
                    width=24,
                    defaults=bars,
                ),
                Panel(
                    "the newest runs",
                    [rows_of([*_RUN, "points", *VERDICTS, "wall_s", "digest", "commit"], "runs", plan)],
                    "table",
                    width=24,
                    height=9,
                ),
            ],
        ),
        Row(
            "Points and expectations that did not pass",
            [
                Panel(
                    "expectations",
                    [
                        rows_of(
                            [*_RUN, "expectation::tag", "verdict::tag", "detail"],
                            "expectations",
                            f"\"verdict\" != 'pass' AND {plan}",
                        )
                    ],
                    "table",
                    width=24,
                    height=9,
                ),
                Panel(
                    "points",
                    [
                        rows_of(
                            [*_RUN, "point::tag", "cc::tag", "verdict::tag", "reason"],
                            "points",
                            f"\"verdict\" != 'pass' AND {plan}",
                        )
                    ],
                    "table",
                    width=24,
                    height=9,
                    defaults=_TO_POINT,
                ),
            ],
        ),
    ]


BOARD = Board(
    "testctl: runs",
    "All uploaded runs, and the points and expectations that did not pass.",
    _rows,
    [values_of("plan", "runs", "plan", every=True)],
)
