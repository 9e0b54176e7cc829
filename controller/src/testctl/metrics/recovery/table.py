# SPDX-License-Identifier: Apache-2.0
"""The table of recoveries: one row each, fast recovery and recovery after a timeout."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa

from testctl.metrics.core.memo import once
from testctl.metrics.core.view import view
from testctl.metrics.recovery.capture_gaps import unsure
from testctl.metrics.recovery.measure import Recovery, measure
from testctl.metrics.recovery.state_machine import Walk, walk
from testctl.metrics.recovery.trace import traces
from testctl.records import Records

_ARROW = {"str": pa.string(), "int": pa.int64()}

RECOVERIES = pa.schema(
    [(column.name, arrow) for kind, arrow in _ARROW.items() for column in fields(Recovery) if column.type == kind]
)
"""Times in ns relative to T0, rows are row numbers of the packets table; -1 not known, or there is none.

entered_by         dupacks: three duplicate ACKs or more than two segments SACKed; early: fewer; timeout;
                   path_mtu: an ICMP message that the packets were too large
exited_by          ack: the recovery point was acknowledged; timeout; end: the capture ended before
limit              why something is not known, "" when all is; with a capture that starts in it or has a
                   gap nothing is known but when it was seen
first_dup_*        the first duplicate ACK; entry_*: the ACK that let the first retransmission go
point, una         the recovery point (snd.nxt at entry), snd.una at entry; flight_bytes: FlightSize, their difference
                   (further timeouts move the point on)
dup_acks           duplicate ACKs before the first retransmission
acks               ACKs from the entry to before the exit
sent               what was sent on each ACK from the first duplicate one to before the exit
sent_first_round   the same, only on the ACKs of what was in flight when the first duplicate ACK came
first_new_ns       from the entry to the first new segment
burst_max          most packets sent on one ACK; silence_ns: longest time in which nothing was sent;
                   silent_acks: most ACKs one after another on which nothing was sent (all from the entry to the exit)
prr_delivered      bytes newly acknowledged or SACKed from the entry to before the exit; prr_out: bytes sent
prr_over           largest prr_out - 2 prr_delivered after any ACK: above 0 the bound was broken
lost_retransmissions   retransmissions that never arrived (only a capture at the receiver shows it)
resent             retransmissions of what had been retransmitted in the same recovery
pipe_*             bytes by RFC 6675 when the first retransmission leaves (before it), and before the exit
cwnd_min           least of the tcp_info samples in the recovery, segments
cwnd_exit, ssthresh    segments just before the exit; window_source: trace, tcp_info, flight, unknown
"""


@once
def flow_walks(records: Records, flow: str) -> list[Walk]:
    """The connections of a flow that retransmitted, as far as captured at the sender, walked once."""
    return [walk(trace) for trace in traces(view(records, flow), repaired=True)]


@once
def flow_recoveries(records: Records, flow: str) -> list[Recovery]:
    """Every recovery of a flow in order of entry, made once."""
    recoveries = []
    for walked in flow_walks(records, flow):
        gaps = unsure(walked.trace) if walked.episodes else []
        recoveries += [measure(walked, episode, gaps) for episode in walked.episodes]
    return sorted(recoveries, key=lambda recovery: (recovery.entry_ns, recovery.conn))


def recoveries_table(records: Records) -> pa.Table:
    """All recoveries of a point (schema RECOVERIES)."""
    rows = [vars(recovery) for flow in records.flows for recovery in flow_recoveries(records, flow)]
    return pa.table({name: [row[name] for row in rows] for name in RECOVERIES.names}, schema=RECOVERIES)
