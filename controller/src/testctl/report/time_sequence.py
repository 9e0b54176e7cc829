# SPDX-License-Identifier: Apache-2.0
"""What a time-sequence figure of one connection shows, in the manner of Figure 2 of the PRR paper (IMC 2011)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.matching import wire
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.view import FlowView, Rows
from testctl.metrics.recovery.kernel_trace import traced_columns
from testctl.metrics.recovery.measure import Recovery
from testctl.metrics.recovery.table import flow_recoveries
from testctl.records.schema import SACK_EDGES, Ints


class Bars(NamedTuple):
    """Intervals of sequence numbers [low, high) at times (ns), in order of time."""

    time_ns: Ints
    low: Ints
    high: Ints

    def within(self, start_ns: float, end_ns: float) -> Bars:
        first, last = np.searchsorted(self.time_ns, [start_ns, end_ns])
        return Bars(*(column[first:last] for column in self))


class Line(NamedTuple):
    """A level that holds until the next time (ns)."""

    time_ns: Ints
    level: Ints

    def within(self, start_ns: float, end_ns: float) -> Line:
        """With the last step before, so that it begins at the edge."""
        first, last = np.searchsorted(self.time_ns, [start_ns, end_ns])
        return Line(*(column[max(first - 1, 0) : last] for column in self))


@dataclass(frozen=True)
class TimeSequence:
    """One connection at its sender (or, where that was not captured, at its receiver).

    data, again: first and repeated transmissions; sacks: SACK blocks when their ACK came; una: snd.una;
    edge: the highest byte that the receiver's window allowed; allowed: the byte that cwnd let it send up to,
    snd.nxt + (cwnd - pipe), where the sender's kernel was traced; drops: (time, middle of the packet) of data
    that a switch dropped, by telemetry, else of what left and never arrived; drops_say which.
    """

    flow: str
    conn: int
    data: Bars
    again: Bars
    sacks: Bars
    una: Line
    edge: Line
    allowed: Line
    drops: Line
    drops_say: str
    recoveries: Sequence[Recovery]

    @property
    def name(self) -> str:
        """The flow, with the connection's number if it is not the first."""
        return f"{self.flow} #{self.conn}" if self.conn else self.flow

    @property
    def span_ns(self) -> tuple[int, int]:
        """From the first packet to the last, with a small margin."""
        times = [part.time_ns for part in (self.data, self.again, self.una) if len(part.time_ns)]
        first, last = min((int(t[0]) for t in times), default=0), max((int(t[-1]) for t in times), default=1)
        room = max((last - first) // 50, 1)
        return first - room, last + room


def time_sequence(flow: FlowView, conn: int) -> TimeSequence:
    """Of one connection."""

    def mine(rows: Rows) -> Rows:
        return rows.where(rows["conn"] == conn) if len(rows) else rows

    data = mine(flow.sent if len(flow.sent) else flow.arrived)
    acks = mine(flow.acks_in if len(flow.acks_in) else flow.acks_out)
    again, end = data["retrans"].astype(bool), data["seq"] + data["length"]
    drops, say = _drops(flow, conn)
    una = np.maximum.accumulate(acks["ack"]) if len(acks) else acks["ack"]
    return TimeSequence(
        flow=flow.name,
        conn=conn,
        data=Bars(data["time_ns"][~again], data["seq"][~again], end[~again]),
        again=Bars(data["time_ns"][again], data["seq"][again], end[again]),
        sacks=_sacks(acks),
        una=Line(acks["time_ns"], una),
        edge=Line(acks["time_ns"], np.maximum.accumulate(acks["ack"] + acks["window"]) if len(acks) else una),
        allowed=_allowed(flow, conn, int(data["length"].max()) if len(data) else 0),
        drops=drops,
        drops_say=say,
        recoveries=[one for one in flow_recoveries(flow.records, flow.name) if one.conn == conn],
    )


def _allowed(flow: FlowView, conn: int, mss: int) -> Line:
    events = traced_columns(flow.records, flow.name)
    mine = events["conn"] == conn
    room = np.maximum(events["cwnd"] - events["pipe"], 0)[mine] * mss
    return Line(events["time_ns"][mine], events["snd_nxt"][mine] + room)


def _sacks(acks: Rows) -> Bars:
    parts = [(acks["time_ns"], acks[low], acks[high]) for low, high in _pairs()]
    time_ns, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
    some = np.flatnonzero((low >= 0) & (high > low))
    some = some[np.argsort(time_ns[some], kind="stable")]
    return Bars(time_ns[some], low[some], high[some])


def _pairs() -> Iterator[tuple[str, str]]:
    return zip(SACK_EDGES[::2], SACK_EDGES[1::2], strict=True)


def _drops(flow: FlowView, conn: int) -> tuple[Line, str]:
    passed = data_passages(flow)
    if passed:
        rows = [passage.rows.where(passage.dropped & (passage.rows["conn"] == conn)) for passage in passed]
        time_ns = np.concatenate([part["time_ns"] for part in rows])
        middle = np.concatenate([part["seq"] + part["length"] // 2 for part in rows])
        order = np.argsort(time_ns, kind="stable")
        return Line(time_ns[order], middle[order]), "dropped by a switch"
    if not (len(flow.sent) and len(flow.arrived)):
        return Line(np.empty(0, np.int64), np.empty(0, np.int64)), ""
    rows_lost = wire(flow).row[lost_packets(flow)]
    rows_lost = np.unique(rows_lost[flow.sent["conn"][rows_lost] == conn])
    middle = flow.sent["seq"][rows_lost] + flow.sent["length"][rows_lost] // 2
    return Line(flow.sent["time_ns"][rows_lost], middle), "never arrived"
