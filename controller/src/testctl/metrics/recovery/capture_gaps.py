# SPDX-License-Identifier: Apache-2.0
"""Where a capture can't be trusted to show all that its connection did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.trace import Trace
from testctl.records.schema import Ints

MID = "the capture starts mid-connection"
GAP = "the capture has a gap"
NO_SACK = "no SACK: what was delivered is not known"
ENDS = "the capture ends in it"
_ON_END = 128
"""ACKs that are looked at together: fewer than are mostly under way."""


class Unsure(NamedTuple):
    """Events first..last (positions in the trace, both included) and why they can't be trusted."""

    first: int
    last: int
    why: str


def unsure(trace: Trace) -> list[Unsure]:
    """The stretches in which more may have been under way than was captured.

    Mid-connection: until all that had left by the first data seen is acknowledged.  Gap: new data
    that does not follow on what left before, or an ACK or SACK of data that was not seen to leave;
    both last until that data is acknowledged.
    """
    return [*_mid(trace), *_gaps(trace)] if len(trace) else []


def _until(trace: Trace, byte: int) -> int:
    """The event that acknowledged up to `byte`; the last one if none did."""
    return min(trace.reached(byte), len(trace) - 1)


def _mid(trace: Trace) -> Iterator[Unsure]:
    if not trace.from_start:
        yield Unsure(0, _until(trace, trace.end_of(0)), MID)


def _gaps(trace: Trace) -> Iterator[Unsure]:
    data, acks = trace.data, trace.acks
    first_leaves_gap = trace.from_start and trace.nxt_after(0) < int(data.seq[0])
    left = np.flatnonzero(np.concatenate([[first_leaves_gap], data.seq[1:] > data.nxt[:-1]]))
    some = _beyond(trace)
    sent, top = trace.data_before(some), acks.number[some]
    sacked = np.searchsorted(some, trace.sacks)
    top[sacked] = np.maximum(top[sacked], trace.sack_tops)
    told = (top > trace.nxts_after(sent)) & (trace.from_start | (sent > 0))
    found = [*_events(left + trace.acks_before(left), left, data.seq[left])]
    found += _events((some + sent)[told], sent[told], top[told])
    for event, before, byte in sorted(found):
        since = trace.event_of_data(before - 1) if before else 0
        yield Unsure(since, max(_until(trace, byte), event), GAP)


def _beyond(trace: Trace) -> Ints:
    """The ACKs that may tell of more than was seen to leave before them, ascending, and all with SACK blocks.

    Looked for by many on end: none of them does if the last one's snd.una had left before the first one.
    """
    una = trace.acks.una
    firsts = np.arange(0, len(una), _ON_END)
    lasts = np.minimum(firsts + _ON_END, len(una)) - 1
    some = np.flatnonzero(una[lasts] > trace.nxts_after(trace.data_before(firsts)))
    parts = [np.arange(firsts[at], lasts[at] + 1) for at in some.tolist()]
    return np.unique(np.concatenate([trace.sacks, *parts]))


def _events(event: Ints, before: Ints, byte: Ints) -> Iterator[tuple[int, int, int]]:
    """Each event, how many departures were before it, and what was not seen to leave."""
    return zip(event.tolist(), before.tolist(), byte.tolist(), strict=True)


def limit(stretches: list[Unsure], first: int, last: int) -> str:
    """Why the events first..last can't be trusted; "" if they can."""
    return "; ".join(dict.fromkeys(one.why for one in stretches if one.first <= last and one.last >= first))
