# SPDX-License-Identifier: Apache-2.0
"""Where a capture can't be trusted to show all that its connection did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.trace import Trace
from testctl.records.schema import Ints

MID = "the capture starts mid-connection"
GAP = "the capture has a gap"
NO_SACK = "no SACK: what was delivered is not known"
ENDS = "the capture ends in it"
_BLOCK = 128
"""ACKs that are checked together: below the usual number of ACKs in flight."""


class Unsure(NamedTuple):
    """Events first..last (positions in the trace, both included) and why they can't be trusted."""

    first: int
    last: int
    why: str


def unsure(trace: Trace) -> list[Unsure]:
    """The events during which more may have been in flight than was captured.

    Mid-connection: until all that had left by the first captured data is acknowledged.  Gap: new data that does not
    follow on what left before, or an ACK or SACK of data that was not captured; both last until that data is
    acknowledged.
    """
    if not len(trace):
        return []
    gaps = [] if trace.from_start else [Unsure(0, _until(trace, trace.end_of(0)), MID)]
    data, acks = trace.data, trace.acks
    first_leaves_gap = trace.from_start and trace.nxt_after(0) < int(data.seq[0])
    left = np.flatnonzero(np.concatenate([[first_leaves_gap], data.seq[1:] > data.nxt[:-1]]))
    candidates = _candidates(trace)
    sent, top = trace.data_before(candidates), acks.number[candidates]
    sacked = np.searchsorted(candidates, trace.sacks)
    top[sacked] = np.maximum(top[sacked], trace.sack_tops)
    beyond = (top > trace.nxts_after(sent)) & (trace.from_start | (sent > 0))
    events = np.concatenate([left + trace.acks_before(left), (candidates + sent)[beyond]])
    departures, missing = np.concatenate([left, sent[beyond]]), np.concatenate([data.seq[left], top[beyond]])
    for event, before, byte in sorted(zip(events.tolist(), departures.tolist(), missing.tolist(), strict=True)):
        since = trace.event_of_data(before - 1) if before else 0
        gaps.append(Unsure(since, max(_until(trace, byte), event), GAP))
    return gaps


def _until(trace: Trace, byte: int) -> int:
    """The event that acknowledged up to `byte`; the last one if none did."""
    return min(trace.reached(byte), len(trace) - 1)


def _candidates(trace: Trace) -> Ints:
    """The ACKs that may cover more than was captured before them, and all with SACK blocks, ascending.

    Checked in blocks: if the block's last snd.una was sent before its first ACK, no ACK of the block qualifies.
    """
    una = trace.acks.una
    firsts = np.arange(0, len(una), _BLOCK)
    lasts = np.minimum(firsts + _BLOCK, len(una)) - 1
    blocks = np.flatnonzero(una[lasts] > trace.nxts_after(trace.data_before(firsts)))
    parts = [np.arange(firsts[at], lasts[at] + 1) for at in blocks.tolist()]
    return np.unique(np.concatenate([trace.sacks, *parts]))


def limit(gaps: list[Unsure], first: int, last: int) -> str:
    """Why the events first..last can't be trusted; "" if they can."""
    return "; ".join(dict.fromkeys(gap.why for gap in gaps if gap.first <= last and gap.last >= first))
