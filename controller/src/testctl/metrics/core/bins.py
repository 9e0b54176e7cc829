# SPDX-License-Identifier: Apache-2.0
"""Bytes per bin of time; the bins always sum to the bytes, exactly.

Bins are summed as integers over the runs of packets that share one, so that the cost and the
memory follow the packets and not the bins: 1 µs over 10 s costs the bins only in a dense array.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.native import walks
from testctl.metrics.core.spec import NAN, WIDTHS
from testctl.metrics.core.view import FlowView
from testctl.records.schema import Array, Ints


def dense_bins(
    time_ns: Ints, amount: Array, bin_ns: int, start_ns: int | None = None, end_ns: int | None = None
) -> tuple[Ints, Ints]:
    """(edges, sums) with one more edge than sums; edges are multiples of bin_ns unless start_ns is given.

    Without limits everything is covered.  What lies outside [start_ns, end_ns) is left out.
    """
    if bin_ns <= 0:
        raise ValueError(f"want a bin width above 0 ns; got {bin_ns}")
    if start_ns is not None or end_ns is not None:
        low = 0 if start_ns is None else int(np.searchsorted(time_ns, start_ns))
        high = len(time_ns) if end_ns is None else int(np.searchsorted(time_ns, end_ns))
        time_ns, amount = time_ns[low:high], amount[low:high]
    if start_ns is None:
        start_ns = int(time_ns[0]) // bin_ns * bin_ns if len(time_ns) else 0
    last = end_ns - 1 if end_ns is not None else (int(time_ns[-1]) if len(time_ns) else start_ns - 1)
    count = max((last - start_ns) // bin_ns + 1, 0)
    sums = np.zeros(count, np.int64)
    number, total = walks().bins(time_ns, amount, start_ns, bin_ns)
    sums[number] = total
    return start_ns + bin_ns * np.arange(count + 1, dtype=np.int64), sums


def whole_bins(time_ns: Ints, amount: Array, start_ns: int, end_ns: int, bin_ns: int) -> tuple[int, Ints, Ints]:
    """(number of whole bins in [start_ns, end_ns), the occupied ones, their sums)."""
    count = max((end_ns - start_ns) // bin_ns, 0)
    low, high = np.searchsorted(time_ns, [start_ns, start_ns + count * bin_ns])
    number, total = walks().bins(time_ns[low:high], amount[low:high], start_ns, bin_ns)
    return count, number, total


def spreads(
    time_ns: Ints, amount: Array, start_ns: int, end_ns: int, widths: Mapping[str, int]
) -> dict[str, tuple[float, float]]:
    """By name of a width in ns: (standard deviation, mean) over the whole bins in [start_ns, end_ns), empty ones too.

    NaN with fewer than two bins, or with nothing in them.  A wider bin must be several of the narrower ones.
    """
    by_width = dict.fromkeys(widths, (NAN, NAN))
    for width, bin_ns in sorted(widths.items(), key=lambda item: item[1]):
        count, number, total = whole_bins(time_ns, amount, start_ns, end_ns, bin_ns)
        number *= bin_ns
        number += start_ns
        time_ns, amount = number, total
        if count >= 2 and len(total):
            mean = int(total.sum()) / count
            # Σ(x - mean)² of the occupied bins and of the empty ones: no array of all bins is made.
            apart = total - mean
            square = float(np.square(apart, out=apart).sum()) + (count - len(total)) * mean**2
            by_width[width] = (square / count) ** 0.5, mean
    return by_width


@once
def flow_spreads(flow: FlowView) -> dict[str, tuple[float, float]]:
    """spreads() of all that arrives at the receiver in the steady time, by each of WIDTHS, computed once."""
    return spreads(flow.into["time_ns"], flow.into["wire_bytes"], *flow.steady_ns, WIDTHS)
