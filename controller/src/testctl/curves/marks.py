# SPDX-License-Identifier: Apache-2.0
"""How much of a flow's data arrives with a mark (CE) over time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec, Line
from testctl.curves.core.window import round_width
from testctl.metrics.core.view import FlowView, view
from testctl.records.schema import CE

_PPM = 1_000_000
_PARTS = 40
"""Of a flow's time, about."""


def _marked(flow: FlowView) -> bool:
    return len(flow.arrived) > 0 and bool((flow.arrived["ecn"] == CE).any())


SPEC = CurveSpec(
    name="marks",
    value="ce_share",
    binned="average",
    title="Marks",
    of="data packets that arrive with CE",
    kind="share",
    shape="steps",
    there=_marked,
    zero=True,
    place=35,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns (begin of a part of the time), ce_share (0 to 1), packets (of data that arrived in it); parts without any
    are left out.

    Parts are 1, 2 or 5 times a power of ten ns long, about a fortieth of the flow's time: no bin is finer.
    """
    rows = flow.arrived
    if not len(rows):
        return pa.table({"time_ns": np.empty(0, np.int64), "ce_share": np.empty(0), "packets": np.empty(0, np.int64)})
    time_ns = rows["time_ns"]
    width = max(round_width(int(time_ns[-1] - time_ns[0]) // _PARTS), 1)
    number = time_ns // width - time_ns[0] // width
    packets = np.bincount(number)
    marked = np.bincount(number, rows["ecn"] == CE)
    there = np.flatnonzero(packets)
    starts = (there + time_ns[0] // width) * width
    return pa.table({"time_ns": starts, "ce_share": marked[there] / packets[there], "packets": packets[there]})


def lines(flow: FlowView, conn: int) -> list[Line]:
    """A line for every flow with marked data."""
    lines_ = []
    for name in flow.records.flows:
        seen = view(flow.records, name)
        if _marked(seen):
            table = compute(seen)
            share = np.rint(table["ce_share"].to_numpy() * _PPM).astype(np.int64)
            lines_.append(Line(name, table["time_ns"].to_numpy(), share))
    return lines_
