# SPDX-License-Identifier: Apache-2.0
"""Consecutive events of a connection, one column for each of their fields."""

from __future__ import annotations

from dataclasses import dataclass

from testctl.records.schema import Array, Bools, Ints


@dataclass(frozen=True)
class Part:
    """Events first <= event < first + len of a trace, in the order of the capture; arrays have one entry an event.

    row: of the packets table; is_ack: an ACK that came, else data (or a FIN) that left;
    seq, end: of data, the byte behind its last (and behind a FIN); payload, segs: bytes and packets on
    the wire of data, 0 of ACKs; again: data that had left before; number: of an ACK;
    una, nxt: snd.una and snd.nxt after the event;
    plain: of an ACK, it carried no payload; at: its entry in the trace's `blocks`; top: the highest byte that an
    ACK acknowledged or SACKed.
    """

    first: int
    row: Array
    time_ns: Ints
    is_ack: Bools
    seq: Ints
    end: Ints
    payload: Array
    segs: Array
    again: Bools
    number: Ints
    una: Ints
    nxt: Ints
    plain: Bools
    at: Array
    top: Ints

    def __len__(self) -> int:
        return len(self.row)

    def part(self, low: int, high: int) -> Part:
        """Its events low <= event < high, numbered as in the trace."""
        inside = slice(low - self.first, high - self.first)
        return Part(low, **{name: column[inside] for name, column in vars(self).items() if name != "first"})
