# SPDX-License-Identifier: Apache-2.0
"""How long a flow took.

From the departure of its first packet (the SYN, wherever it was captured leaving) to the arrival of the last packet
that brought bytes which had not arrived before: a packet that fills a hole counts, a copy does not.  Both hosts'
clocks are in it; what they are apart is taken off, and a time below its error is NaN.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.clocks import apart
from testctl.metrics.core.native import walks
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, Rows, rows_of, view
from testctl.records import Records
from testctl.records.schema import Ints

SPEC = MetricSpec(
    name="completion_time",
    help="from a flow's first packet to the arrival of its last new byte",
    needs="sender and receiver",
    values=(MetricInfo("completion_time_s", "s", "first packet's departure to the last new byte's arrival", "lower"),),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    first = first_departure_ns(seen)
    if first is None or not len(seen.arrived):
        return {"completion_time_s": NAN}
    took = int(seen.arrived["time_ns"][last_new(seen.arrived)]) - first
    clocks = apart(seen)
    unsure = clocks is not None and clocks.error_ns > took
    return {"completion_time_s": NAN if unsure else took / 1e9}


def first_departure_ns(seen: FlowView) -> int | None:
    """When a flow's first packet left, by the receiver's clock; None without captures."""
    clocks = apart(seen)
    back = rows_of(seen.records, seen.name, seen.receiver, 1 - seen.direction, out=True)
    times = [int(seen.out["time_ns"][0]) + (clocks.offset_ns if clocks else 0)] if len(seen.out) else []
    times += [int(back["time_ns"][0])] if len(back) else []
    return min(times, default=None)


def last_new(arrived: Rows) -> int:
    """The position of the last packet with bytes that none before it had."""
    start, end = arrived.start, arrived.end
    if _new(start[:-1], end[:-1], int(start[-1]), int(end[-1])):
        return len(arrived) - 1
    total = walks().covered(start, end)
    low, high, step = 0, len(arrived) - 1, 1  # all has arrived with `high`
    while low < high:
        middle = max(high - step, (low + high) // 2)  # mostly it is among the last ones
        step *= 2
        if walks().covered(start[: middle + 1], end[: middle + 1]) == total:
            high = middle
        else:
            low = middle + 1
    return high


def _new(start: Ints, end: Ints, first: int, last: int) -> bool:
    """Whether these intervals leave a byte of [first, last)."""
    over = (start < last) & (end > first)
    if not over.any():
        return True
    return walks().covered(np.maximum(start[over], first), np.minimum(end[over], last)) < last - first
