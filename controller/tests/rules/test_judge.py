# SPDX-License-Identifier: Apache-2.0
"""Which rules are judged at which testbed."""

from __future__ import annotations

import pytest
from testctl.core.outcome import HostClock, Outcome
from testctl.rules.judge import judged

from controller.tests.rules.conversation import HELLO, records

TALK = HELLO + "20000 a > A 0:1000 ack 0\n21000 a > A 0:1000 ack 0\n22000 a > - 1000:1100"
"""A retransmission without evidence, and a packet without the ACK flag."""


@pytest.mark.parametrize(
    ("outcome", "broken"),
    [
        (Outcome(wall={"traffic": 1.0}), ["ack-flag", "rtx-without-evidence"]),
        (Outcome(), ["ack-flag"]),
        (Outcome(placement={"a": "m1"}, clocks={"a": HostClock(0, 0.0)}), ["ack-flag"]),
        (Outcome(clocks={"a": HostClock(0, 0.0)}), ["ack-flag", "rtx-without-evidence"]),
    ],
    ids=["lab", "netns", "rack", "analysed"],
)
def test_what_needs_the_order_is_undecided_by_the_wall_clock(outcome: Outcome, broken: list[str]) -> None:
    names = ("ack-flag", "rtx-without-evidence")
    verdicts = list(judged(records(TALK, outcome=outcome), names))
    assert sorted(verdict.rule for verdict in verdicts if verdict.found.count) == broken
    assert [verdict.rule for verdict in verdicts if verdict.found.undecided] == [n for n in names if n not in broken]
