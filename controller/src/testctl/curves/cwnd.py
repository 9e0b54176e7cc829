# SPDX-License-Identifier: Apache-2.0
"""Congestion window, by tcp_info or by the trace of the sender's kernel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec, Line
from testctl.metrics.core.view import FlowView
from testctl.metrics.recovery.kernel_trace import traced_columns

_COLUMNS = {"cwnd": "snd_cwnd", "ssthresh": "snd_ssthresh", "srtt_us": "rtt", "unacked": "unacked"}
_NO_THRESHOLD = 2**31 - 1

SPEC = CurveSpec(
    name="cwnd",
    value="cwnd",
    binned="last",
    by=("conn",),
    title="Congestion window",
    of="of the connection",
    kind="count",
    shape="steps",
    each="connection",
    there=lambda flow: bool(flow.info) or _traced(flow),
    zero=True,
    place=40,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns, conn, cwnd, ssthresh (packets), srtt_us, unacked, by tcp_info; the last sample of each bin."""
    if not flow.info:
        return pa.table({name: np.empty(0, np.int64) for name in ("time_ns", "conn", *_COLUMNS)})
    columns = {"time_ns": flow.info["time_ns"], "conn": flow.info["conn"].astype(np.int64)}
    return pa.table(columns | {name: flow.info[field] for name, field in _COLUMNS.items()})


def lines(flow: FlowView, conn: int) -> list[Line]:
    """Window and slow-start threshold, where it is known: at every event of a kernel's trace, else by tcp_info."""
    if _traced(flow):
        columns = traced_columns(flow.records, flow.name)
    else:
        table = compute(flow)
        columns = {name: table[name].to_numpy() for name in table.schema.names}
    own = {name: columns[name][columns["conn"] == conn] for name in ("time_ns", "cwnd", "ssthresh")}
    known = (own["ssthresh"] >= 0) & (own["ssthresh"] < _NO_THRESHOLD)
    sampled = own["cwnd"] >= 0
    return [
        Line("window", own["time_ns"][sampled], own["cwnd"][sampled]),
        Line("slow-start threshold", own["time_ns"][known], own["ssthresh"][known]),
    ]


def _traced(flow: FlowView) -> bool:
    return flow.records.tcp_events is not None and len(traced_columns(flow.records, flow.name)["time_ns"]) > 0
