# SPDX-License-Identifier: Apache-2.0
"""Oscillation: whether the throughput swings with a period, how long that is, and how far it goes.

The steady time's throughput in bins of 1 ms (10 or 100 ms if a bin would hold fewer than ten packets)
is correlated with itself; the period is the lag of the highest peak behind the first zero crossing.
A throughput that varies by less than 5 %, or whose peak is below 0.3, has no period.  A flow of more than 200,000 bins
of 100 ms (5.5 hours; a damaged time stamp makes such) has no value.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.bins import whole_bins
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records
from testctl.records.schema import Array

SPEC = MetricSpec(
    name="oscillation",
    help="period and amplitude of a throughput that swings",
    needs="receiver",
    values=(
        MetricInfo("oscillation_period_ms", "ms", "period of the throughput's swing; NaN when steady"),
        MetricInfo("oscillation_amplitude_bps", "bit/s", "half of p95 - p5 of the binned throughput", "lower"),
        MetricInfo("oscillation_strength", "", "correlation of the throughput with itself a period later", "lower"),
    ),
)

_STEADY_CV = 0.05
_WEAK = 0.3
_PACKETS_A_BIN = 10
_MAX_BINS = 200_000


def _bins(seen: FlowView) -> tuple[Array, int]:
    """(bytes per bin, bin width in ns); no bins where there would be too many"""
    start, end = seen.steady_ns
    rows = seen.into
    for bin_ns in (10**6, 10**7, 10**8):
        count = (end - start) // bin_ns
        if count <= _MAX_BINS and len(rows) * bin_ns >= _PACKETS_A_BIN * (end - start):
            break
    if count > _MAX_BINS:
        return np.zeros(0), bin_ns
    count, number, total = whole_bins(rows["time_ns"], rows["wire_bytes"], start, end, bin_ns)
    dense = np.zeros(count)
    dense[number] = total
    return dense, bin_ns


def _peak(swing: Array) -> tuple[int, float]:
    """(lag, correlation) of the highest peak behind the first zero crossing; (0, 0) without one."""
    count = len(swing)
    size = 1 << (2 * count - 1).bit_length()
    correlation = np.fft.irfft(np.abs(np.fft.rfft(swing, size)) ** 2, size)[: count // 3 + 1]
    correlation /= correlation[0]
    correlation *= count / (count - np.arange(len(correlation)))  # as many terms at every lag
    below = np.flatnonzero(correlation < 0)
    if not len(below):
        return 0, 0.0
    lag = int(below[0]) + int(np.argmax(correlation[below[0] :]))
    return lag, float(correlation[lag])


def compute(records: Records, flow: str) -> dict[str, Number]:
    dense, bin_ns = _bins(view(records, flow))
    period = amplitude = strength = NAN
    if len(dense) >= 8 and dense.any():
        low, high = np.percentile(dense, [5, 95])
        amplitude = float(high - low) / 2 * 8e9 / bin_ns
        if dense.std() / dense.mean() >= _STEADY_CV:
            lag, strength = _peak(dense - dense.mean())
            if strength >= _WEAK:
                period = lag * bin_ns / 1e6
    return {
        "oscillation_period_ms": period,
        "oscillation_amplitude_bps": amplitude,
        "oscillation_strength": strength,
    }
