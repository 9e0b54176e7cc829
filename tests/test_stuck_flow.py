# SPDX-License-Identifier: Apache-2.0
"""A flow whose retransmissions are all dropped: the error says the cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testctl.execution.point import measure
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed

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
    (point,) = load_plan(PLAN, metrics={}).points
    result = measure(LabTestbed.for_points([point]), point, tmp_path / "point", keep_captures=False)
    assert result.verdict == "broken"
    words = (
        r"flow bulk: bulk-client on sender: tgen client: connection 0: stopped after \d+ bytes were written, before "
        r"the end: [6-9] timeouts one after the other, the next \d{4,6} ms after the last; no progress since "
        r"0\.(?:0[4-9]|1[0-3])\d s after the flow's start; the fate "
        r"'drop data 5- of bulk' drops what is sent again too, with ', first' at its end it would not"
    )
    assert re.match(words, result.reason), result.reason
