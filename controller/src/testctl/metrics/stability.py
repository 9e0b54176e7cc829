# SPDX-License-Identifier: Apache-2.0
"""Stability: how much the throughput differs from bin to bin, at widths from 1 s to 1 µs.

Bins are the whole ones of the flow's steady time: its active time until the sender stops, less
the first tenth, or less the first 100 ms if that is shorter.  Fewer than two such bins give NaN.
Empty bins count.
"""

from __future__ import annotations

from testctl.metrics.core.bins import flow_spreads
from testctl.metrics.core.spec import WIDTHS, MetricInfo, MetricSpec, Number
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
    values: dict[str, Number] = {}
    for width, (std, mean) in flow_spreads(seen).items():
        values[f"stability_std_{width}"] = std * 8e9 / WIDTHS[width]
        values[f"stability_cv_{width}"] = std / mean
    return values
