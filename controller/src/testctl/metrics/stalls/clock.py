# SPDX-License-Identifier: Apache-2.0
"""How long packets waited in their own host, by their TCP timestamps.

TCP stamps a packet (in ms, with an offset of its own) when it hands it to IP; the capture sees it
when it leaves the queueing discipline.  The smallest difference a connection shows is no wait.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.native import walks
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
    ticks = int((tsval[-1:] - tsval[0]).astype(np.uint32).view(np.int32)[0])
    if span < _MIN_SPAN_MS or not 0.5 <= ticks / span <= 1.5:
        return unknown
    return walks().waits(time_ns, tsval)
