# SPDX-License-Identifier: Apache-2.0
"""A flow that began later than asked."""

from __future__ import annotations

import pytest
from testctl.core.point import TimedFlow
from testctl.testbeds.point_runner import LATE_NS, late
from testctl_agent.wire.results import FlowEnd

FLOW = TimedFlow("bulk", "sender", "receiver", start_ns=10_000_000)
T0_NS = 10**18


@pytest.mark.parametrize("begun", [[], [None], [0], [LATE_NS], [512, LATE_NS]])
def test_on_time_or_not_told(begun: list[int | None]) -> None:
    connections = [{"begin_ns": None if at is None else T0_NS + 10_000_000 + at} for at in begun]
    assert late(FLOW, T0_NS, FlowEnd.from_json({"connections": connections})) == ""


def test_late() -> None:
    connections = [{"begin_ns": T0_NS + 10_000_000}, {"begin_ns": T0_NS + 156_000_000}]
    want = "flow bulk: want its start 10 ms after the point's; a connection began 146 ms later"
    assert late(FLOW, T0_NS, FlowEnd.from_json({"connections": connections})) == want


def test_a_generator_that_does_not_say() -> None:
    assert late(FLOW, T0_NS, FlowEnd()) == ""
