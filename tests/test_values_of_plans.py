# SPDX-License-Identifier: Apache-2.0
"""Ranges, formulas and zipped tuples from the plan to the report: what they stand for is what the switch did."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.core.path_facts import paths_of
from testctl.plan import load_plan
from testctl.report.point_page import point_page
from testctl.report.sweep import axis_of
from testctl.shrink.case import open_case

from tests.plan_runs import run_of

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, {from: 10mbit, to: 40mbit, steps: 2}]
  - [switch, delay, [10ms, 5ms]]
  - [switch:receiver, buffer, [0.25 bdp, 2 bdp]]
  - [bulk, duration, 20 rtt + 200ms]
zip: [[switch:receiver.rate, switch.delay]]
expect:
  - {name: the queue stays in the buffer, metric: switch_queue_max_bytes, max: 110kB}
  - {name: as much as the rate, metric: throughput_bps, at_least: 2, than: {switch.delay: 10ms}}
"""


@pytest.mark.lab
def test_from_the_plan_to_the_report(tmp_path: Path) -> None:
    run = run_of(tmp_path, PLAN)
    values = {tuple(text for _, _, text in point.tuples): point for point in run.points}
    assert [key[:3] for key in values] == [
        ("10mbit", "10ms", "0.25 bdp"),
        ("10mbit", "10ms", "2 bdp"),
        ("40mbit", "5ms", "0.25 bdp"),
        ("40mbit", "5ms", "2 bdp"),
    ]
    for point in load_plan(PLAN).points:
        found = values[tuple(text for _, _, text in point.tuples)]
        limit = round(paths_of([point])["bulk"][0].bdp_bytes * float(point.tuples[2][2].split()[0]))
        assert found.point["settings"]["switch:receiver"]["buffer"] == limit
        queue = found.metrics["bulk"]["switch_queue_max_bytes"]
        assert isinstance(queue, int | float)
        assert limit / 2 < queue <= limit
    (first, *_) = run.points
    assert point_page(first)["tuples"][2:] == [
        ["switch:receiver", "buffer", "0.25 bdp (6.266kB)"],
        ["bulk", "duration", "20 rtt + 200ms (601.056ms)"],
    ]
    assert axis_of("switch:receiver.buffer", [key[2] for key in values]).numbers == (0.25, 2)
    case = open_case(run, run.points[2].id, "2", holds=True)
    assert case.tuples[1:] == (
        ("switch", "delay", "5ms"),
        ("switch:receiver", "buffer", "12.516kB"),
        ("bulk", "duration", "400.264ms"),
    )
    assert case.than == {"switch:receiver.rate": "10mbit", "switch.delay": "10ms"}
