# SPDX-License-Identifier: Apache-2.0
"""Flow completion time: the flow's first packet (its SYN) leaving, to the last new byte's arrival."""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import CONN_BITS, view
from testctl.records import Records

SPEC = MetricSpec(
    name="completion_time",
    help="from a flow's first packet to the arrival of its last new byte",
    values=(MetricInfo("completion_time_s", "s", "first packet's departure to the last new byte's arrival", "lower"),),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    firsts = [rows["time_ns"][0] for rows in (seen.out, seen.into, seen.acks_in, seen.acks_out) if len(rows)]
    data = seen.arrived if len(seen.arrived) else seen.sent
    if not len(data):
        return {"completion_time_s": NAN}
    conn, end = data["conn"].astype(np.int64), data.end
    order = np.lexsort((end, conn))
    final = order[np.append(np.diff(conn[order]) > 0, True)]  # a packet with each connection's last byte
    last_byte = np.full(int(conn.max()) + 1, np.iinfo(np.int64).max, np.int64)
    last_byte[conn[final]] = end[final]
    complete = end == last_byte[end - 1 >> CONN_BITS]
    _, first = np.unique(conn[complete], return_index=True)
    done = data["time_ns"][complete][first].max()
    return {"completion_time_s": float(done - min(firsts)) / 1e9}
