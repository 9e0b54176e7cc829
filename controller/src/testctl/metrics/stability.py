# SPDX-License-Identifier: Apache-2.0
"""Stability: how much the throughput differs from bin to bin, at widths from 1 s to 1 µs.

Bins are the whole ones of the flow's steady time: its active time less the first tenth, or less
the first 100 ms if that is shorter.  Fewer than two such bins give NaN.  Empty bins count.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.bins import whole_bins
from testctl.metrics.core.spec import NAN, WIDTHS, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records

SPEC = MetricSpec(
    name="stability",
    help="standard deviation and coefficient of variation of the binned throughput",
    needs="receiver",
    values=tuple(
        info
        for width in WIDTHS
        for info in (
            MetricInfo(f"stability_std_{width}", "bit/s", f"standard deviation over bins of {width}", "lower"),
            MetricInfo(f"stability_cv_{width}", "", f"standard deviation / mean over bins of {width}", "lower"),
        )
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    start, end = seen.steady_ns
    rows = seen.into
    values: dict[str, Number] = {}
    for width, bin_ns in WIDTHS.items():
        count, _, total = whole_bins(rows["time_ns"], rows["wire_bytes"], start, end, bin_ns)
        std = cv = NAN
        if count >= 2 and len(total):
            mean = int(total.sum()) / count
            # Σ(x - mean)² of the occupied bins and of the empty ones: no array of all bins is made.
            square = float(np.square(total - mean).sum()) + (count - len(total)) * mean**2
            std = (square / count) ** 0.5
            cv = std / mean
        values[f"stability_std_{width}"] = std * 8e9 / bin_ns
        values[f"stability_cv_{width}"] = cv
    return values
