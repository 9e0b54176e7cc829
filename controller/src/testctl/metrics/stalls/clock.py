# SPDX-License-Identifier: Apache-2.0
"""How long packets waited in their own host, by their TCP timestamps.

TCP stamps a packet (in ms, with an offset of its own) when it hands it to IP; the capture sees it
when it leaves the queueing discipline.  The smallest difference a connection shows is no wait.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.native import if_compiled
from testctl.metrics.core.view import Rows
from testctl.records.schema import Ints

_MS = 1_000_000
_MIN_SPAN_MS = 50


def own_waits(out: Rows) -> Ints:
    """ns (to about 1 ms) that each departure waited in its host; -1 where that can't be known.

    It can't without timestamps, nor when they do not count milliseconds.
    """
    unknown = np.full(len(out), -1, np.int64)
    tsval, time_ns = out["tsval"], out["time_ns"]
    if not len(out) or int(tsval.min()) < 0:
        return unknown
    span = int(time_ns[-1] // _MS - time_ns[0] // _MS)
    if span < _MIN_SPAN_MS or not 0.5 <= int(_ticks(tsval[[0, -1]])[-1]) / span <= 1.5:
        return unknown
    walks = if_compiled()
    return waits(time_ns, tsval) if walks is None else walks.waits(time_ns, tsval)


def waits(time_ns: Ints, tsval: Ints) -> Ints:
    """How much longer than the least each packet waited, by numpy."""
    waited = time_ns // _MS - _ticks(tsval)
    return np.asarray((waited - waited.min()) * _MS)


def _ticks(tsval: Ints) -> Ints:
    """Since the first one."""
    return np.asarray((tsval - tsval[0]).astype(np.uint32).view(np.int32), np.int64)
