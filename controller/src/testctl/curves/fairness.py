# SPDX-License-Identifier: Apache-2.0
"""Jain's index of all connections of a point over time, of the received bytes.

Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec, Line
from testctl.curves.core.window import round_width
from testctl.metrics.core.view import FlowView, view

PPM = 1_000_000
"""Of a share that is drawn."""
_PARTS = 50
"""Of the time of all data, about."""


SPEC = CurveSpec(
    name="fairness",
    value="jain",
    binned="average",
    title="Fairness",
    of="Jain's index of all connections that last",
    kind="share",
    shape="steps",
    there=lambda flow: sum(f.parallel for f in flow.records.point.flows) > 1 and len(flow.arrived) > 0,
    zero=True,
    whole=True,
    place=15,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns (begin of a part of the time), jain (0 to 1) and connections, both of the connections alone whose data
    began before the part and ended after it; parts with two of them at least.

    Parts are 1, 2 or 5 times a power of ten ns long, about a fiftieth of the time: no bin is finer.
    """
    arrived = []  # (times, lengths) of each connection's data
    for name in flow.records.flows:
        rows = view(flow.records, name).arrived
        for conn in np.unique(rows["conn"]).tolist() if len(rows) else ():
            packets = rows.of_conn(conn)
            arrived.append((packets["time_ns"], packets["length"]))
    if len(arrived) < 2:
        return pa.table({"time_ns": np.empty(0, np.int64), "jain": np.empty(0), "connections": np.empty(0, np.int64)})
    first = min(int(time_ns[0]) for time_ns, _ in arrived)
    last = max(int(time_ns[-1]) for time_ns, _ in arrived)
    width = max(round_width((last - first) // _PARTS), 1)
    starts = np.arange(first // width, last // width + 1) * width
    sums = np.zeros((len(arrived), len(starts)))
    lasting = np.zeros(sums.shape, bool)
    for row, (time_ns, size) in enumerate(arrived):
        number = time_ns // width - starts[0] // width
        sums[row] = np.bincount(number, size, len(starts))
        lasting[row, number[0] + 1 : number[-1]] = True
    sums[~lasting] = 0
    count, square = lasting.sum(axis=0), (sums**2).sum(axis=0)
    known = (count > 1) & (square > 0)
    jain = sums.sum(axis=0)[known] ** 2 / (count[known] * square[known])
    return pa.table({"time_ns": starts[known], "jain": jain, "connections": count[known].astype(np.int64)})


def lines(flow: FlowView, conn: int) -> list[Line]:
    """A single line, of all flows."""
    table = compute(flow)
    jain = np.rint(table["jain"].to_numpy() * PPM).astype(np.int64)
    return [Line("Jain's index", table["time_ns"].to_numpy(), jain)]
