# SPDX-License-Identifier: Apache-2.0
"""How long packets waited in their own host, by their TCP timestamps.

TCP stamps a packet (in ms, with an offset of its own) when it hands it to IP; the capture sees it
when it leaves the queueing discipline.  The smallest difference a connection shows is no wait.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.view import Rows
from testctl.records.schema import Ints

_MS = 1_000_000
_MIN_SPAN_MS = 50


def own_waits(out: Rows) -> Ints:
    """ns (to about 1 ms) that each departure waited in its host; -1 where that can't be known.

    It can't without timestamps, nor when they do not count milliseconds.
    """
    unknown = np.full(len(out), -1, np.int64)
    tsval, time_ms = out["tsval"], out["time_ns"] // _MS
    if not len(out) or (tsval < 0).any():
        return unknown
    ticks = (tsval - tsval[0]).astype(np.uint32).view(np.int32).astype(np.int64) if len(out) else unknown
    span = int(time_ms[-1] - time_ms[0])
    if span < _MIN_SPAN_MS or not 0.5 <= int(ticks[-1]) / span <= 1.5:
        return unknown
    waited = time_ms - ticks
    return np.asarray((waited - waited.min()) * _MS)
