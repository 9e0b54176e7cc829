# SPDX-License-Identifier: Apache-2.0
"""How much longer requests took than on an empty path, by their size.

The ideal time of a request is the one-way delay that the plan sets along the path, and the serialisation of its
packets, with all headers from Ethernet on, at the least rate of the path: it has no handshake, no slow start and no
queue.  A small request on a connection of its own therefore takes up to three times as long.  Of a request with an
answer it is the sum of both ways.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.completions import completions, infos, summarise
from testctl.metrics.core.spec import MetricSpec, Number
from testctl.records import Records

SPEC = MetricSpec(
    name="slowdown",
    help="completion times of a flow's requests over their time on an empty path: its one-way delay and serialisation "
    "at its least rate, without a handshake; NaN when no rate is set, or one changes",
    needs="requests",
    values=infos("slowdown", "", "completion time over the empty path's"),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    done = completions(records, flow)
    return summarise("slowdown", "", done, done.slowdown if done is not None else np.empty(0))
