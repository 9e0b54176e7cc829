# SPDX-License-Identifier: Apache-2.0
"""What leaves by its pace, or is written so slowly, is no tail loss probe, however long after the packet before."""

from __future__ import annotations

import pytest
from testctl.metrics import timeouts
from testctl.records.schema import TCP_LIMITS

from controller.tests.rules.conversation import HELLO, records
from controller.tests.rules.traced import burst, events


@pytest.mark.parametrize(("limit", "probes"), [("pacing", 0), ("cwnd", 1)])
def test_a_slow_pace_is_no_probe(limit: str, probes: int) -> None:
    assert probes_of(limit, 1000) == probes


@pytest.mark.parametrize(("length", "probes"), [(1000, 0), (400, 1)])
def test_a_whole_packet_after_all_was_sent_is_the_applications(length: int, probes: int) -> None:
    """It writes slowly; less than a packet may have waited for an ACK (Nagle)."""
    assert probes_of("application", length) == probes


@pytest.mark.parametrize(
    ("flags", "cwnd", "kernel", "probes"),
    [("FP", 10, "6.12", 0), ("P", 10, "6.12", 1), ("FP", 2, "6.1", 0), ("FP", 2, "6.12", 1), ("P", 2, "6.1", 1)],
)
def test_data_that_ends_with_the_fin_waits_for_no_timer(flags: str, cwnd: int, kernel: str, probes: int) -> None:
    """Before 6.12 it leaves beyond the window too (tcp_cwnd_test())."""
    assert probes_of("cwnd", 1000, flags, cwnd, kernel) == probes


def probes_of(limit: str, length: int, flags: str = "A", cwnd: int = 10, kernel: str = "6.12") -> float:
    """Loss probes where data leaves 40 ms after all else, with an SRTT of 10 ms."""
    end = 2000 + length
    text = HELLO + burst(10000, 0, 2) + f"50000 a > {flags} 2000:{end} ack 0\n60000 a < A ack {end}\n"
    nxt = end + ("F" in flags)
    trace = f"10000 send open una 0 nxt 2000 cwnd 10 ssthresh 99 pipe 2 prior 0 limited {TCP_LIMITS.index(limit)}\n"
    trace += f"50000 send open una 0 nxt {nxt} cwnd {cwnd} ssthresh 99 pipe 3 prior 2 limited 4\n"
    trace += f"60000 ack open una {nxt} nxt {nxt} cwnd 12 ssthresh 99 pipe 0 prior 3 limited 1\n"
    options = {"pattern": "greedy", "rate": "none", "generator": "tgen"}
    made = records(text, events=events(trace), options=options, settings={"a": {"kernel": kernel, "tcp_events": True}})
    return float(timeouts.compute(made, "f")["loss_probes"])
