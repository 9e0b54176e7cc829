# SPDX-License-Identifier: Apache-2.0
"""Connections that fail: records are kept, the reason says the cause, and a plan may expect it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testctl.execution.point import keep, measure
from testctl.plan import evaluate, load_plan
from testctl.report.embedded import embedded
from testctl.results import load_point
from testctl.testbeds.lab import LabTestbed

from tests.plan_runs import records_of

PLAN = b"""
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, 100mbit]
  - [switch, fate, "drop data 5- of bulk"]
  - [switch, delay, 20ms]
  - [bulk, bytes, 64KiB]
"""


@pytest.mark.lab
def test_all_that_is_sent_again_is_dropped(tmp_path: Path) -> None:
    plan = load_plan(PLAN, metrics={})
    (point,) = plan.points
    result = measure(LabTestbed.for_points([point]), point, tmp_path / "point", keep_captures=False)
    assert (result.verdict, result.metrics["bulk"]["failure"]) == ("pass", "incomplete")
    ((verdict,), _) = evaluate(plan, {point.id: result.measured})
    assert (verdict.verdict, verdict.reason) == ("fail", result.reason)
    words = (
        r"flow bulk, client: connection 0: stopped after \d+ bytes were written, before "
        r"the end: [6-9] timeouts one after the other, the next \d{4,6} ms after the last; the last progress was "
        r"0\.(?:0[4-9]|1[0-3])\d s after the flow's start; the fate "
        r"'drop data 5- of bulk' drops what is sent again too, with ', first' at its end it would not"
    )
    assert re.match(words, result.reason), result.reason


ERRORS = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch, rate, 10mbit]
  - [switch:receiver, down, DOWN]
  - [bulk, duration, 20s]
"""
DEATHS = {
    "SYNs": ("0s-100s", "[hosts, tcp_syn_retries, 2]", "ETIMEDOUT, incomplete", (7, 8)),
    "data": ("1s-100s", "[bulk, user_timeout, 4s]", "ETIMEDOUT, incomplete", (5, 7)),
    "data, reversed": ("0s-100s", "[bulk, reverse, on]", "incomplete, ETIMEDOUT", (5, 7)),
    "keepalive": ("4s-6s", "[bulk, keepalive, 5s]", "ETIMEDOUT", (10, 11)),
}


@pytest.mark.lab
@pytest.mark.parametrize("case", DEATHS)
def test_a_connection_that_dies(case: str, tmp_path: Path) -> None:
    down, tuples, failure, (least, most) = DEATHS[case]
    text = ERRORS.replace("DOWN", down) + f"  - {tuples}\n"
    if case == "keepalive":
        text += '  - [bulk, user_timeout, 4s]\n  - [bulk, pattern, "schedule 0s:1448B,20s:1448B"]\n'
    if case == "data, reversed":
        text = text.replace("switch:receiver, down, 0s", "switch:sender, down, 1s") + "  - [bulk, user_timeout, 4s]\n"
    plan = load_plan((text + "expect: [{fails_with: ETIMEDOUT}]").encode(), metrics={})
    (point,) = plan.points
    result = measure(LabTestbed.for_points([point]), point, tmp_path / "point", keep_captures=False)
    found = result.metrics["bulk"]
    assert found["failure"] == failure, result.reason
    assert least <= float(found["failure_time_s"] or 0) <= most
    assert records_of(result).packets.num_rows
    ((verdict,), _) = evaluate(plan, {point.id: result.measured})
    assert (verdict.verdict, verdict.reason) == ("pass", "")
    (tmp_path / "run" / "points").mkdir(parents=True)
    shown = embedded(load_point(keep(tmp_path / "run", point, result)))
    assert shown is not None
    assert shown["figures"]
