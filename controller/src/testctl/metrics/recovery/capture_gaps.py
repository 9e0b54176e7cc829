# SPDX-License-Identifier: Apache-2.0
"""Where a capture can't be trusted to show all that its connection did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from testctl.metrics.recovery.trace import Trace

MID = "the capture starts mid-connection"
GAP = "the capture has a gap"
NO_SACK = "no SACK: what was delivered is not known"
ENDS = "the capture ends in it"


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
    return min(int(np.searchsorted(trace.una, byte)), len(trace) - 1)


def _mid(trace: Trace) -> Iterator[Unsure]:
    if trace.from_start:
        return
    data = np.flatnonzero(~trace.is_ack)
    if len(data):
        yield Unsure(0, _until(trace, int(trace.end[data[0]])), MID)


def _gaps(trace: Trace) -> Iterator[Unsure]:
    before = np.concatenate([[trace.start], trace.nxt[:-1]])
    left = ~trace.is_ack & (trace.seq > before)
    told = trace.is_ack & (trace.top > before)
    if not trace.from_start:
        first = np.flatnonzero(~trace.is_ack)
        known = int(first[0]) if len(first) else len(trace)
        left[: known + 1] = False
        told[:known] = False
    data = np.flatnonzero(~trace.is_ack)
    for event in np.flatnonzero(left | told).tolist():
        earlier = data[: np.searchsorted(data, event)]
        since = int(earlier[-1]) if len(earlier) else 0
        byte = int(trace.seq[event] if left[event] else trace.top[event])
        yield Unsure(since, max(_until(trace, byte), event), GAP)


def limit(stretches: list[Unsure], first: int, last: int) -> str:
    """Why the events first..last can't be trusted; "" if they can."""
    return "; ".join(dict.fromkeys(one.why for one in stretches if one.first <= last and one.last >= first))
