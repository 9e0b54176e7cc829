# SPDX-License-Identifier: Apache-2.0
"""The table of stalls: one row a silence, with its cause, how it ended and the packets that prove it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

from testctl.metrics.core.memo import once
from testctl.metrics.core.view import view
from testctl.metrics.stalls.classify import classify
from testctl.metrics.stalls.evidence import Evidence, connections
from testctl.records import Records

CAUSES = {
    "ack_owed": "all had arrived and the receiver owed an ACK that it did not send until the sender sent again",
    "delayed_ack": "all had arrived and the receiver sent its ACK late, by itself",
    "rto": "packets (or their ACK, or a SYN) were lost, or dropped by the receiver, and the timeout repaired it",
    "tlp": "packets (or their ACK) were lost, or dropped by the receiver, and a tail loss probe repaired it",
    "loss": "packets (or their ACK) were lost, or dropped by the receiver, and ACKs repaired it",
    "tokens": "the packets waited in the sender's own queueing discipline",
    "window": "the receiver's window was closed, or it dropped what was beyond it",
    "application": "the application had nothing to send",
    "path": "data or ACKs were under way",
}
ENDS = {
    "rto": "retransmission timeout",
    "tlp": "tail loss probe",
    "ack": "an ACK arrived",
    "new_data": "new data, with no ACK before it",
    "end": "it did not end before the records do",
}

_INT64 = (
    "start_ns end_ns length_ns srtt_ns outstanding_bytes missing_bytes lost_bytes owed_bytes "
    "last_sent_row last_sent_seq last_sent_end una "
    "received_row received_ns received_seq received_end "
    "acked_row acked_ns acked "
    "ender_row ender_seq ender_length rto_us waited_ns own_wait_ns"
)

STALLS = pa.schema(
    [
        ("flow", pa.string()),
        ("conn", pa.int16()),
        ("cause", pa.string()),
        ("ended_by", pa.string()),
        *((name, pa.int64()) for name in _INT64.split(" ")),
        ("received_ce", pa.int8()),
        ("received_ce_before", pa.int8()),
        ("acked_ece", pa.int8()),
        ("ender_retrans", pa.bool_()),
        ("proof", pa.string()),
    ]
)
"""Times in ns relative to T0; rows are row numbers of the packets table; sequence numbers are relative.

start_ns, end_ns       the data packets around the silence (end_ns: the end of records when none followed)
srtt_ns                median of the 64 round trips before it
outstanding_bytes      sent and not acknowledged to the sender just before what ended it
missing_bytes          of these, not at the receiver, or dropped there; -1 when the receiver was not captured
lost_bytes             of those, in packets that never arrived, or that the receiver dropped, as its next ACK shows (the
                       rest was still under way); -1 likewise
owed_bytes             arrived in order and not acknowledged by the receiver; -1 likewise
last_sent_*, una       the last data sent before it (end: the highest byte sent), and the highest ACK that came
received_*             the last data that had arrived at the receiver; received_ce and received_ce_before:
                       whether it and the one before it had CE (-1: there was none)
acked_*, acked         the last ACK that the receiver had sent, its number and its ECE flag (-1: not known)
ender_*                the packet that ended it (-1: none)
rto_us                 the sender's timeout by the last tcp_info sample before the end; -1 unknown
waited_ns              from the last departure or progress of ACKs to the end: what a timer would have waited
own_wait_ns            how long the packet that ended it waited in its own host, by its TCP timestamp; -1 unknown
"""


@dataclass(frozen=True)
class Stall:
    """A row of the table."""

    evidence: Evidence
    cause: str
    ended_by: str
    proof: str

    def row(self) -> dict[str, object]:
        return {**asdict(self.evidence), "cause": self.cause, "ended_by": self.ended_by, "proof": self.proof}


@once
def flow_stalls(records: Records, flow: str) -> list[Stall]:
    """Every stall of a flow in order of start, made once."""
    stalls = []
    for connection in connections(view(records, flow)):
        for evidence in connection.silences():
            cause, ended_by = classify(evidence)
            stalls.append(Stall(evidence, cause, ended_by, proof(evidence)))
    return sorted(stalls, key=lambda stall: (stall.evidence.start_ns, stall.evidence.conn))


def stalls_table(records: Records) -> pa.Table:
    """All stalls of a point (schema STALLS)."""
    rows = [stall.row() for flow in records.flows for stall in flow_stalls(records, flow)]
    columns = {name: [row[name] for row in rows] for name in STALLS.names}
    return pa.table(columns, schema=STALLS)


def proof(e: Evidence) -> str:
    """The evidence in words."""
    sent = f"bytes up to {e.last_sent_end}" if e.last_sent_end >= 0 else "no bytes"
    acked = f"ACK {e.una} was the last to come back" if e.una >= 0 else "no ACK had come back"
    parts = [f"{sent} left by {_s(e.start_ns)}", acked]
    if e.received_row >= 0:
        change = {0: "without CE", 1: "with CE"}
        text = f"{e.received_seq}..{e.received_end} arrived at {_s(e.received_ns)} {change[e.received_ce]}"
        if e.received_ce_before >= 0 and e.received_ce_before != e.received_ce:
            text += f", the packet before it {change[e.received_ce_before]}"
        parts.append(text)
        missing = f"{e.missing_bytes} bytes were missing, {e.lost_bytes} of them lost"
        parts.append(missing if e.missing_bytes > 0 else "nothing was missing")
    if e.acked_row >= 0:
        ece = " with ECE" if e.acked_ece > 0 else ""
        parts.append(
            f"the receiver's last ACK was {e.acked}{ece} at {_s(e.acked_ns)}, {max(e.owed_bytes, 0)} bytes owed"
        )
    if e.ender_row >= 0:
        again = " again" if e.ender_retrans else ""
        parts.append(f"{e.ender_seq}..{e.ender_seq + e.ender_length} left{again} at {_s(e.end_ns)}")
    return "; ".join(parts)


def _s(time_ns: int) -> str:
    return f"{time_ns / 1e9:.6f} s"
