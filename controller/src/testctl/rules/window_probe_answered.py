# SPDX-License-Identifier: Apache-2.0
"""A probe of the window is answered."""

from __future__ import annotations

from testctl.records.schema import FIN
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="window-probe-answered",
    must="A packet that arrives at a host with a zero window, or outside its window, is answered by an ACK at once.",
    source="RFC 9293, 3.8.6.1 and 3.10.7.4",
    level="MUST",
    needs=("order", "packets"),
    quote="When the receiving TCP peer has a zero window and a segment arrives, it must still send an acknowledgment "
    "showing its next expected sequence number and current window (zero).",
    linux="Since 4.0 packets without payload below the window are answered once in tcp_invalid_ratelimit, 500 ms "
    "(tcp_oow_rate_limited()).",
)


def check(trace: Trace) -> Found:
    known = ~trace.out & trace.from_syn & (trace.rcv_nxt > NEVER) & (trace.offered > NEVER)
    empty = trace.pure_ack & (trace["seq"] == trace.rcv_nxt - 1)
    beyond = trace.data & (trace["seq"] + trace["length"] > trace.offered) & (trace["seq"] >= trace.rcv_nxt)
    probes = known & (empty | beyond) & ~trace.has(FIN)
    answer = trace.following(trace.acks, probes)
    broken = trace.late(probes, answer, trace.at_once_ns)
    if not broken.any():
        return NOTHING
    limit = int(trace.settings.get("net.ipv4.tcp_invalid_ratelimit", 500)) * 1_000_000
    # Where the kernel counted such, any packet below the window, which came late, may have been the one answered.
    skipped = trace.records.snmp(trace.host).get("TcpExt.TCPACKSkippedSeq")
    below = trace.pure_ack & (trace["seq"] < trace.rcv_nxt) if skipped else empty
    last = trace.latest(known & below & ~broken)
    limited = empty & (last >= 0) & (trace["time_ns"] - trace["time_ns"][last] <= limit)
    return where(
        broken & ~limited,
        lambda row: (
            f"received a probe at {trace['seq'][row]}, its window ending at {trace.offered[row]}, and sent no ACK"
        ),
        answer,
    )
