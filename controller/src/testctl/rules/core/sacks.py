# SPDX-License-Identifier: Apache-2.0
"""The SACK blocks that a host sent, next to what had arrived at it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from testctl.records.schema import ACK, RST, SYN, Bools, Ints
from testctl.rules.core.trace import Trace, once

_BLOCKS = 4


@dataclass
class Sacks:
    """Blocks of the ACKs that leave, in their order.

    row     of the trace: the ACK
    number  the block's place in its option, from 0
    """

    trace: Trace
    row: Ints
    number: Ints
    start: Ints
    end: Ints

    @cached_property
    def duplicate(self) -> Bools:
        """D-SACK blocks (RFC 2883, 4): the first of an option if below the ACK number or within the second block."""
        trace, row = self.trace, self.row
        second = (trace["sack2_start"][row], trace["sack2_end"][row])
        inside = (second[0] >= 0) & (self.start >= second[0]) & (self.end <= second[1])
        return np.asarray((self.number == 0) & ((self.start < trace["ack"][row]) | inside))


@once
def blocks(trace: Trace) -> Sacks:
    """All blocks that the host sent."""
    acks = trace.out & trace.has(ACK) & ~trace.has(SYN) & ~trace.has(RST)
    parts = []
    for number in range(_BLOCKS):
        rows, *edges = trace.blocks(number + 1, acks)
        parts.append(np.stack([rows, np.full(len(rows), number), *edges]))
    all_blocks = np.concatenate(parts, axis=1)
    return Sacks(trace, *all_blocks[:, np.argsort(all_blocks[0], kind="stable")])


@once
def in_use(trace: Trace) -> Bools:
    """Rows of connections in which either end sent a block: both permitted SACK."""
    rows, start = trace.others("sack1_start")
    return trace.anywhere(trace.sparse(rows, start >= 0))


@once
def exact_acks(trace: Trace) -> Bools:
    """Rows of connections whose ACKs say which data arrived: with SACK, or without duplicate ones, and in order."""
    late = trace.anywhere(trace.board.acks & (trace["ack"] < trace.una))
    return np.asarray((in_use(trace) | ~trace.anywhere(trace.board.repeats)) & ~late)


def unsplit(trace: Trace) -> str:
    """Why TCP may have left out a part of a SACK block; "": it took all (tcp_fragment(), with a full send buffer)."""
    left = trace.records.snmp(trace.host).get("TcpExt.TCPWqueueTooBig")
    return f"{trace.host} did not split a packet in which a SACK block ends (TcpExt.TCPWqueueTooBig)" if left else ""


def compression_ns(trace: Trace) -> int:
    """How long Linux may hold ACKs behind the third duplicate."""
    settings = trace.settings
    if int(settings.get("net.ipv4.tcp_comp_sack_nr", 44)) == 0:
        return 0
    delay = int(settings.get("net.ipv4.tcp_comp_sack_delay_ns", 1_000_000))
    return delay + int(settings.get("net.ipv4.tcp_comp_sack_slack_ns", 100_000))
