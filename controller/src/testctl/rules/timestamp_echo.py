# SPDX-License-Identifier: Apache-2.0
"""ACKs echo the timestamp of the segment that they acknowledge first."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import ACK, RST
from testctl.rules.core.rows import NEVER
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, where
from testctl.rules.core.timestamps import stamps_of
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="timestamp-echo",
    must="ACKs echo TS.Recent, the highest timestamp of segments that began no higher than the last ACK then sent.",
    source="RFC 7323, 4.3",
    level="MUST",
    needs=("order", "packets"),
    quote="SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then SEG.TSval is copied to TS.Recent; otherwise, it is "
    "ignored.",
    linux="A SYN-ACK echoes the first SYN, also after another has come (tcp_check_req()). A segment whose ACK number "
    "is below SND.UNA changes nothing (tcp_ack(), old_ack). Since 4.18 the ACK of DCTCP for what came before a change "
    "of CE counts as one of RCV.NXT (__tcp_send_ack(), and tcp_select_window(), which sets rcv_wup).",
)


def check(trace: Trace) -> Found:
    stamps = stamps_of(trace)
    echo, recent = trace.echo, stamps.recent
    acks = trace.out & trace.has(ACK) & ~trace.has(RST) & (trace["tsval"] >= 0) & stamps.agreed
    less, more = acks & (echo < recent), acks & ((echo > recent) | (recent == NEVER) | trace.dctcp)
    if not (less | more).any():
        return NOTHING
    least, most = stamps.recent_at_least, stamps.recent_at_most
    broken = (less | more) & ((echo < least) & (trace.reading_ns == 0) | (echo > most)) & (most > NEVER)
    return where(
        np.asarray(broken),
        lambda row: (
            f"echoes the timestamp {trace['tsecr'][row]}; TS.Recent is {max(least[row], 0) % 2**32} to "
            f"{most[row] % 2**32}"
        ),
        lambda: trace.latest(~trace.out),
    )
