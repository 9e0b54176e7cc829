# SPDX-License-Identifier: Apache-2.0
"""Runs and their verdicts."""

from __future__ import annotations

from testctl.charts.style import VERDICT_LOOKS
from testctl.results import VERDICTS

from testctl_influx.grafana.influxql import chosen, named_by, over_time, table, values_of
from testctl_influx.grafana.model import Board, Panel, Row, override

_CHOSEN = chosen("plan", "testbed")
_RUN = ("plan::tag", "testbed::tag", "run::tag")
_TO_POINT = {
    "links": [
        {
            "title": "this point",
            "url": "/d/testctl-point?var-plan=${__data.fields.plan}&var-run=${__data.fields.run}"
            "&var-point=${__data.fields.point}&time=${__data.fields.Time.numeric}&time.window=20000",
        }
    ]
}
_COLOURS = [
    override(name, "color", {"mode": "fixed", "fixedColor": look.colour}) for name, look in VERDICT_LOOKS.items()
]
_WIDTHS = dict.fromkeys(("points", *VERDICTS, "wall_s"), 80)


def _rows() -> list[Row]:
    plan = _CHOSEN
    bad = f"\"verdict\" != 'pass' AND {plan}"
    sums = [f'sum("{verdict}") AS "{verdict}"' for verdict in VERDICTS]
    bars = {"custom": {"drawStyle": "bars", "stacking": {"mode": "normal"}, "fillOpacity": 80}}
    newest = [*_RUN, "points", *VERDICTS, "wall_s", "digest", "commit"]
    expectations = [*_RUN, "expectation::tag", "verdict::tag", "detail"]
    points = [*_RUN, "point::tag", "cc::tag", "verdict::tag", "reason"]
    return [
        Row(
            "Runs",
            [
                _total("runs", ['count("points") AS "runs"'], 4),
                _total("points by verdict", sums, 20),
                Panel(
                    "points by verdict, at each run",
                    over_time(sums, "runs", plan),
                    named_by(field=True),
                    width=24,
                    defaults=bars,
                    overrides=_COLOURS,
                ),
                table("the newest runs", newest, "runs", plan, widths=_WIDTHS),
            ],
        ),
        Row(
            "Points and expectations that did not pass",
            [
                table("expectations", expectations, "expectations", bad),
                table("points", points, "points", bad, defaults=_TO_POINT),
            ],
        ),
    ]


def _total(title: str, values: list[str], width: int) -> Panel:
    """Values over all chosen runs, as numbers."""
    query = f'SELECT {", ".join(values)} FROM "runs" WHERE {_CHOSEN} AND $timeFilter'
    look = {"reduceOptions": {"calcs": ["lastNotNull"], "values": False}, "colorMode": "value"}
    return Panel(title, query, named_by(field=True), "stat", width=width, height=6, options=look, overrides=_COLOURS)


BOARD = Board(
    "testctl: runs",
    "All uploaded runs, and the points and expectations that did not pass.",
    _rows,
    [values_of("plan", "runs", "plan", every=True), values_of("testbed", "runs", "testbed", "plan", every=True)],
)
