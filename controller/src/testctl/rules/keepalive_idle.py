# SPDX-License-Identifier: Apache-2.0
"""Keepalive probes come when the application wants them."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK
from testctl.rules.core.sender import TICK_NS, ms
from testctl.rules.core.spec import NOTHING, SENDER, Found, RuleSpec, undecided, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="keepalive-idle",
    must="Keepalive probes are off unless the application wants them, and wait for its interval after anything came.",
    source="RFC 9293, 3.8.4",
    level="MUST",
    needs=SENDER,
    any_clock=True,
    linux="What is not acceptable, as the peer's own probe, does not count as heard (tcp_validate_incoming()).",
    quote="the application MUST be able to turn them on or off for each TCP connection, and they MUST default to off",
)


def check(trace: Trace) -> Found:
    idle = trace.option("keepalive", None)
    if idle is None:
        return undecided("the generator does not report whether it wants keepalive probes")
    time = trace["time_ns"]
    probe = trace.out & trace.pure_ack & (trace["seq"] == trace.nxt - 1) & (trace.una == trace.nxt) & (trace.nxt > 0)
    if not probe.any():
        return NOTHING
    # What leaves into a window that is closed, or that the peer took back, probes the window.
    probe &= trace.limit[np.maximum(trace.latest(~trace.out & trace.has(ACK), probe), 0)] > trace.nxt
    heard = ~trace.out & ((trace["seq"] >= trace.rcv_nxt) | (trace.end > trace.rcv_nxt))
    last = np.maximum(trace.latest(probe), trace.latest(heard))
    since = time - time[np.maximum(last, 0)]
    early = np.ones(len(trace), np.bool_) if idle == "off" else since < int(idle) - 2 * TICK_NS
    return where(
        probe & early & trace.from_syn,
        lambda row: f"a keepalive probe {ms(since[row])} after the last packet; keepalive is {idle}",
        last,
    )
