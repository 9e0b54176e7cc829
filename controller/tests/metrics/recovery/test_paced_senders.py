# SPDX-License-Identifier: Apache-2.0
"""What leaves by its pace is no tail loss probe, however long after the packet before."""

from __future__ import annotations

import pytest
from testctl.metrics import timeouts
from testctl.records.schema import TCP_LIMITS

from controller.tests.rules.conversation import HELLO, records
from controller.tests.rules.traced import burst, events


@pytest.mark.parametrize(("limit", "probes"), [("pacing", 0), ("cwnd", 1)])
def test_a_slow_pace_is_no_probe(limit: str, probes: int) -> None:
    """SRTT is 10 ms, and nothing came for 40."""
    text = HELLO + burst(10000, 0, 2) + burst(50000, 2, 1) + "60000 a < A ack 3000\n"
    trace = f"10000 send open una 0 nxt 2000 cwnd 10 ssthresh 99 pipe 2 prior 0 limited {TCP_LIMITS.index(limit)}\n"
    trace += "50000 send open una 0 nxt 3000 cwnd 10 ssthresh 99 pipe 3 prior 2 limited 4\n"
    trace += "60000 ack open una 3000 nxt 3000 cwnd 12 ssthresh 99 pipe 0 prior 3 limited 1\n"
    options = {"pattern": "greedy", "rate": "none", "generator": "tgen"}
    made = records(text, events=events(trace), options=options, settings={"a": {"kernel": "6.12", "tcp_events": True}})
    assert timeouts.compute(made, "f")["loss_probes"] == probes
