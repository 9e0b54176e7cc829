# SPDX-License-Identifier: Apache-2.0
"""Finds the silences of a connection and gathers what both ends knew during each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from testctl.metrics.core.accurate_ecn import accurate_ecn
from testctl.metrics.core.available import of_flow
from testctl.metrics.core.latencies import lost_packets
from testctl.metrics.core.matching import wire
from testctl.metrics.core.native import walks
from testctl.metrics.core.view import CONN_BITS, FlowView, Rows, rows_of
from testctl.metrics.recovery.flow_timers import SHUT, flow_timers
from testctl.metrics.recovery.round_trips import RoundTrips
from testctl.metrics.recovery.timers import FLOOR_NS, RTO
from testctl.metrics.recovery.trace import Trace, trace_of
from testctl.records.schema import CE, ECE, RST, SYN, Ints

ROUND_TRIPS = 4
NEVER = -1
_ANY_WINDOW = 1 << 30
"""More than TCP has."""
_MS = 1_000_000
_MIN_SPAN_MS = 50
"""Least time over which it is known whether TCP's time stamps count milliseconds."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of a silence; fields of the table's schema, and these, which only decide the cause:

    trigger          an ACK came just before the packet that ended it
    trigger_wait_ns  how long the receiver had the data before it first sent an ACK of all that this ACK covers; -1
                     unknown
    again_ns         how long after that the receiver sent this one
    window_room      bytes that the receiver's window left before that ACK
    ender_alone      one packet ended it, and nothing more left until an ACK came
    timer            which timer sent the packet that ended it (recovery/flow_timers.py); "" none
    under_way_ns     how long before the end the receiver sent its last ACK, if that came after the end; else -1
    unanswered       the last departure is a SYN, which nothing had answered in the first half of the silence
    refused          what had arrived in order and was not acknowledged lies beyond the window of the receiver's last
                     ACK, so it had to drop it (RFC 9293, 3.10.7.4)
    unsent_bytes     written by the application and not sent, by the last tcp_info sample within; -1 none
    """

    flow: str
    conn: int
    start_ns: int
    end_ns: int
    length_ns: int
    srtt_ns: int
    outstanding_bytes: int
    missing_bytes: int
    lost_bytes: int
    owed_bytes: int
    last_sent_row: int
    last_sent_seq: int
    last_sent_end: int
    una: int
    received_row: int
    received_ns: int
    received_seq: int
    received_end: int
    received_ce: int
    received_ce_before: int
    acked_row: int
    acked_ns: int
    acked: int
    acked_ece: int
    ender_row: int
    ender_seq: int
    ender_length: int
    ender_retrans: bool
    rto_us: int
    waited_ns: int
    own_wait_ns: int
    trigger: bool
    trigger_wait_ns: int
    again_ns: int
    window_room: int
    mss: int
    ender_alone: bool
    timer: str
    under_way_ns: int
    unanswered: bool
    refused: bool
    unsent_bytes: int


def connections(flow: FlowView) -> list[BothEnds]:
    """The connections of a flow that sent data, or a SYN."""
    ends = [BothEnds(trace_of(flow, conn)) for conn in flow.out.conns]
    return [both for both in ends if len(both.out)]


@dataclass
class BothEnds:
    """A connection by the captures of both ends: its trace at the sender, and packets by role, in order of time."""

    trace: Trace

    @property
    def flow(self) -> FlowView:
        return self.trace.flow

    @cached_property
    def out(self) -> Rows:
        """Departures with payload or SYN."""
        whole = self.flow.out.of_conn(self.trace.conn)
        return whole.where((whole["length"] > 0) | (whole["flags"] & SYN > 0))

    @cached_property
    def acks_in(self) -> Rows:
        """The rows of the trace's ACKs."""
        return self.flow.acks_in.of_conn(self.trace.conn)

    @cached_property
    def arrived(self) -> Rows:
        return self.flow.arrived.of_conn(self.trace.conn)

    @cached_property
    def acks_out(self) -> Rows:
        return self.flow.acks_out.of_conn(self.trace.conn)

    @cached_property
    def next_byte(self) -> Ints:
        """The highest byte sent up to each of out."""
        return np.maximum.accumulate(self.out["seq"] + np.maximum(self.out["length"], 0))

    @cached_property
    def arrived_end(self) -> Ints:
        return np.asarray(self.arrived["seq"] + self.arrived["length"])

    @cached_property
    def received(self) -> Ints:
        """The highest byte that arrived up to each of arrived."""
        return np.maximum.accumulate(self.arrived_end)

    @cached_property
    def acked(self) -> Ints:
        """The highest ACK that left up to each of acks_out."""
        return np.maximum.accumulate(self.acks_out["ack"])

    @cached_property
    def waits(self) -> Ints:
        """ns (to about 1 ms) that each of out waited in its host; -1 where that can't be known.

        TCP stamps a packet (in ms, with an offset of its own) when it hands it to IP; the capture sees it when it
        leaves the queueing discipline.  The smallest difference that a connection shows is no wait.  Nothing is known
        without time stamps, nor when they do not count milliseconds.
        """
        tsval, time_ns = self.out["tsval"], self.out["time_ns"]
        span = int(time_ns[-1] // _MS - time_ns[0] // _MS)
        ticks = int((tsval[-1:] - tsval[0]).astype(np.uint32).view(np.int32)[0])
        if int(tsval.min()) < 0 or span < _MIN_SPAN_MS or not 0.5 <= ticks / span <= 1.5:
            return np.full(len(self.out), -1, np.int64)
        return walks().waits(time_ns, tsval)

    @cached_property
    def mss(self) -> int:
        """The largest payload; 1 where a capture shows packets merged."""
        return int(self.out["length"].max()) if int(self.out["segs"].max()) == 1 else 1

    @cached_property
    def lost(self) -> tuple[Ints, Ints, Ints]:
        """Departure, first byte and length of each packet that never arrived."""
        packets, sent = wire(self.flow), self.flow.sent
        entries = np.flatnonzero(lost_packets(self.flow))
        entries = entries[sent["conn"][packets.row[entries]] == self.trace.conn]
        first = packets.start[entries] - (self.trace.conn << CONN_BITS)
        return sent["time_ns"][packets.row[entries]], first, packets.end[entries] - packets.start[entries]

    @cached_property
    def _back(self) -> Rows:
        """All that came back to the sender, without the flag ACK too."""
        back = rows_of(self.flow.records, self.flow.name, self.flow.sender, 1 - self.flow.direction, out=False)
        return back.of_conn(self.trace.conn)

    @cached_property
    def echoes(self) -> bool:
        """Whether the flag ECE of its ACKs tells of a mark."""
        return self.trace.conn not in accurate_ecn(self.flow)

    @cached_property
    def timers(self) -> dict[int, str]:
        """Which timer sent a departure, by its row; that it probes a closed window is the cause's to say."""
        return {timed.row: RTO if timed.by == SHUT else timed.by for timed in flow_timers(self.flow)}

    def silences(self) -> Iterator[Evidence]:
        """Every silence longer than four round trips and 1 ms, in order."""
        time_ns = self.out["time_ns"]
        lasts = np.flatnonzero(np.diff(time_ns) > FLOOR_NS)
        ends = time_ns[lasts + 1]
        if (end_ns := self._end_of_records()) - time_ns[-1] > FLOOR_NS:
            lasts, ends = np.append(lasts, len(time_ns) - 1), np.append(ends, end_ns)
        medians = RoundTrips(self.flow, self.trace.conn).medians_ns(time_ns[lasts])
        long = ends - time_ns[lasts] > ROUND_TRIPS * medians
        for last, end_ns, srtt_ns in zip(lasts[long], ends[long], medians[long], strict=True):
            yield self._evidence(int(last), int(end_ns), int(srtt_ns))

    def _end_of_records(self) -> int:
        """Where the last silence ends: nowhere unless data is outstanding when records end, or at the connection's
        reset."""
        last = int(self.out["time_ns"][-1])
        acks = self.trace.acks
        if not len(acks.row) or acks.una[-1] >= self.next_byte[-1]:
            return last
        resets = [
            rows["time_ns"][rows["flags"] & RST > 0] for rows in (self._back, self.flow.out.of_conn(self.trace.conn))
        ]
        if len(at := np.concatenate(resets)) and at.max() >= last:
            return int(at[at >= last].min())
        return max(last, self.flow.records.outcome.length_ns, int(acks.time_ns[-1]))

    def _evidence(self, last: int, end_ns: int, srtt_ns: int) -> Evidence:
        out, acks, info = self.out, self.trace.acks, self.trace.info
        start_ns = int(out["time_ns"][last])
        ender = last + 1 if last + 1 < len(out) else NEVER
        length_ns = end_ns - start_ns
        # ACKs before the packet that ended it, by place in the capture: in virtual time an ACK and
        # what it lets go have the same time.  On a busy host what it lets go waits behind the packets of other
        # connections: as long as its time stamp tells, and up to 1 ms that it can't tell.
        waited_ns = FLOOR_NS + max(int(self.waits[ender]), 0) if ender >= 0 else FLOOR_NS
        came = int(np.searchsorted(self.acks_in.index, out.index[ender])) if ender >= 0 else len(acks.row)
        soon = end_ns - min(max(srtt_ns // 4, waited_ns), length_ns // 2)
        before = min(int(np.searchsorted(acks.time_ns, soon)), came)
        una = int(acks.una[before - 1]) if before else 0
        next_byte = int(self.next_byte[last])
        sent_by = self._trigger_sent(before, came)
        held_ns, again_ns = self._held_ns(before, sent_by, una)
        progress_ns = start_ns  # when the sender last sent, or last got an ACK that moved on
        if got := came if ender >= 0 else before:
            progress_ns = max(start_ns, int(acks.time_ns[np.searchsorted(acks.una, acks.una[got - 1])]))
        unanswered = bool(out["flags"][last] & SYN) and not before
        if unanswered:  # by ACKs with SYN neither, which are not in acks_in
            answers = self._back["time_ns"][self._back["flags"] & SYN > 0]
            unanswered = not len(answers) or int(answers[0]) > end_ns - length_ns // 2
        sampled = int(np.searchsorted(info["time_ns"], end_ns)) - 1 if info else NEVER
        sampled_within = sampled >= 0 and int(info["time_ns"][sampled]) > start_ns
        return Evidence(
            flow=self.flow.name,
            conn=self.trace.conn,
            start_ns=start_ns,
            end_ns=end_ns,
            length_ns=length_ns,
            srtt_ns=srtt_ns,
            outstanding_bytes=max(next_byte - una, 0),
            last_sent_row=int(out.index[last]),
            last_sent_seq=int(out["seq"][last]),
            last_sent_end=next_byte,
            una=una,
            ender_row=int(out.index[ender]) if ender >= 0 else NEVER,
            ender_seq=int(out["seq"][ender]) if ender >= 0 else NEVER,
            ender_length=int(out["length"][ender]) if ender >= 0 else 0,
            ender_retrans=bool(out["retrans"][ender]) if ender >= 0 else False,
            waited_ns=end_ns - progress_ns,
            own_wait_ns=int(self.waits[ender]) if ender >= 0 else NEVER,
            trigger=ender >= 0 and came > before,
            trigger_wait_ns=held_ns,
            again_ns=again_ns,
            window_room=una + self._window(self.acks_in, before) - next_byte if before else _ANY_WINDOW,
            mss=self.mss,
            ender_alone=self._alone(ender),
            timer=self.timers.get(int(out.index[ender]), "") if ender >= 0 else "",
            unanswered=unanswered,
            rto_us=int(info["rto"][sampled]) if sampled >= 0 else NEVER,
            unsent_bytes=int(info["notsent_bytes"][sampled]) if sampled_within else NEVER,
            under_way_ns=self._under_way_ns(end_ns),
            **self._at_receiver(una, next_byte, end_ns if sent_by < 0 else sent_by, start_ns),
        )

    def _window(self, acks: Rows, before: int) -> int:
        """The window of the ACK before this one.  Without both SYNs its scale is unknown, and only 0 is known."""
        window = int(acks["window"][before - 1])
        return window if self._scaled or not window else _ANY_WINDOW

    @cached_property
    def _scaled(self) -> bool:
        return bool((self.out["flags"] & SYN).any() and (self._back["flags"] & SYN).any())

    def _trigger_sent(self, before: int, came: int) -> int:
        """When the receiver sent the first ACK that came just before the end; -1 when there is none."""
        if came == before or not len(self.acks_out):
            return NEVER
        number, arrived = self.trace.acks.number[before], int(self.trace.acks.time_ns[before])
        until = int(np.searchsorted(self.acks_out["time_ns"], arrived, side="right"))
        same = np.flatnonzero(self.acks_out["ack"][max(until - 1000, 0) : until] == number)
        return int(self.acks_out["time_ns"][max(until - 1000, 0) + same[-1]]) if len(same) else NEVER

    def _held_ns(self, before: int, sent_by: int, una: int) -> tuple[int, int]:
        """(how long the receiver had all that the ACK covers before it acknowledged it, how long before this ACK)."""
        if sent_by < 0 or not len(self.received):
            return NEVER, NEVER
        number, time_ns = int(self.trace.acks.number[before]), self.arrived["time_ns"]
        first = int(self.acks_out["time_ns"][int(np.searchsorted(self.acked, number))])
        could = range(int(np.searchsorted(self.received, number)), int(np.searchsorted(time_ns, first, side="right")))
        at = bisect_left(could, number, key=lambda row: self._in_order(una, number, row + 1)[1])
        return max(first - int(time_ns[could[at]]), 0) if at < len(could) else NEVER, sent_by - first

    def _under_way_ns(self, end_ns: int) -> int:
        """How long the receiver's last ACK before the end had been sent, if it came after it; by its time stamp."""
        answers = int(np.searchsorted(self.acks_out["time_ns"], end_ns)) if len(self.acks_out) else 0
        if not answers or (stamp := int(self.acks_out["tsval"][answers - 1])) < 0:
            return NEVER
        number, acks = self.acks_out["ack"][answers - 1], self.trace.acks
        first, after = (int(np.searchsorted(acks.una, number, side=side)) for side in ("left", "right"))
        first = max(first, int(np.searchsorted(acks.time_ns, end_ns, side="right")))
        same = acks.number[first:after] == number
        came = bool((same & (self.acks_in["tsval"][first:after] == stamp)).any())
        return end_ns - int(self.acks_out["time_ns"][answers - 1]) if came else NEVER

    def _in_order(self, una: int, until: int, arrivals: int) -> tuple[int, int]:
        """Of the bytes between two numbers: how many the first arrivals lack, and up to which they have them all."""
        first = int(np.searchsorted(self.received[:arrivals], una, side="right"))
        begin, end = self.arrived["seq"][first:arrivals], self.arrived_end[first:arrivals]
        order = np.argsort(begin, kind="stable")
        begin, end = np.maximum(begin[order], una), np.minimum(end[order], until)
        covered = np.maximum.accumulate(np.append(una, end))
        holes = np.maximum(begin - covered[:-1], 0)
        missing = int(holes.sum()) + max(until - int(covered[-1]), 0)
        return missing, int(covered[int(np.argmax(holes > 0))]) if holes.any() else int(covered[-1])

    def _alone(self, ender: int) -> bool:
        """Whether one packet ended it and no more left until an ACK came (or at all)."""
        if ender < 0 or int(self.out["segs"][ender]) > 1:
            return False
        if ender + 1 == len(self.out):
            return True
        after = int(np.searchsorted(self.acks_in.index, self.out.index[ender]))
        return after < len(self.acks_in) and int(self.acks_in.index[after]) < int(self.out.index[ender + 1])

    def _kept(self, arrivals: int, in_order: int) -> int:
        """Up to which byte of what had arrived in order the receiver took it, by its first ACK after these arrivals.

        Where none follows it took all, unless it left a repeated packet unanswered, as none that has the bytes does.
        """
        answer = int(np.searchsorted(self.acks_out["time_ns"], self.arrived["time_ns"][arrivals - 1] + FLOOR_NS))
        if answer < len(self.acks_out):
            return min(int(self.acks_out["ack"][answer]), in_order)
        last_ns, time_ns = int(self.acks_out["time_ns"][-1]) if answer else -1, self.arrived["time_ns"]
        repeated = time_ns > last_ns
        repeated[np.unique(self.arrived["seq"], return_index=True)[1]] = False
        return 0 if (repeated & (time_ns < self._end_of_records() - FLOOR_NS)).any() else in_order

    def _at_receiver(self, una: int, next_byte: int, until_ns: int, start_ns: int) -> dict[str, Any]:
        """What had arrived at the receiver before `until_ns`, and what it had acknowledged.

        What arrived and its next ACK does not cover it had dropped, as without memory or with a wrong checksum.
        """
        missing, lost, owed = NEVER, NEVER, NEVER
        refused = False
        got, acknowledged = self.arrived, self.acks_out
        arrivals = int(np.searchsorted(got["time_ns"], until_ns))
        answers = int(np.searchsorted(acknowledged["time_ns"], until_ns))
        acked = int(self.acked[answers - 1]) if answers else 0
        if "receiver" in of_flow(self.flow.records, self.flow.name):
            missing, in_order = self._in_order(una, next_byte, arrivals)
            left, byte, length = self.lost
            lost = min(missing, int(length[(left <= start_ns) & (byte + length > una) & (byte < next_byte)].sum()))
            owed = max(in_order - acked, 0) if len(self.flow.acks_out) else NEVER
            refused = owed > 0 and answers > 0 and acked + self._window(acknowledged, answers) < in_order
            if owed > 0 and not refused:
                dropped = in_order - max(self._kept(arrivals, in_order), acked)
                missing, lost, owed = missing + dropped, lost + dropped, owed - dropped
        row, previous = arrivals - 1, arrivals - 2
        return {
            "missing_bytes": missing,
            "lost_bytes": lost,
            "owed_bytes": owed,
            "refused": refused,
            "received_row": int(got.index[row]) if row >= 0 else NEVER,
            "received_ns": int(got["time_ns"][row]) if row >= 0 else NEVER,
            "received_seq": int(got["seq"][row]) if row >= 0 else NEVER,
            "received_end": int(self.arrived_end[row]) if row >= 0 else NEVER,
            "received_ce": int(got["ecn"][row] == CE) if row >= 0 else NEVER,
            "received_ce_before": int(got["ecn"][previous] == CE) if previous >= 0 else NEVER,
            "acked_row": int(acknowledged.index[answers - 1]) if answers else NEVER,
            "acked_ns": int(acknowledged["time_ns"][answers - 1]) if answers else NEVER,
            "acked": acked if answers else NEVER,
            "acked_ece": int(acknowledged["flags"][answers - 1] & ECE > 0) if answers and self.echoes else NEVER,
        }
