# SPDX-License-Identifier: Apache-2.0
"""Oscillation: whether the throughput swings with a period, how long that is, and how far it goes.

The steady time's throughput in bins of 1 ms (10 or 100 ms if a bin would hold fewer than ten packets), one begun each
tenth of a bin, is correlated with itself.  What lies outside of its 5th and 95th percentile counts as these, so that a
slow start does not outweigh a minute after it.  The correlation at a lag is r / m of the McLeod pitch method
(McLeod, Wyvill, "A Smarter Way to Find Pitch", ICMC 2005, sections 4 and 5), at most 1; the period is the first lag
whose peak, behind the first zero crossing, is at least 0.9 of the highest: that one may be at a multiple of the period.
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
_HIGHEST = 0.9
_PACKETS_A_BIN = 10
_MAX_BINS = 200_000
_BEGUN = 10
"""Bins that begin within the length of one: a period need not be a multiple of a bin."""
_RESOLVED = 3
"""Bins that a period has at least, or narrower bins are looked at, too."""


def _width_ns(seen: FlowView) -> int:
    """The bin width; 0 where there would be too many bins."""
    start, end = seen.steady_ns
    for bin_ns in (10**6, 10**7, 10**8):
        count = (end - start) // bin_ns
        if count <= _MAX_BINS and len(seen.into) * bin_ns >= _PACKETS_A_BIN * (end - start):
            break
    return bin_ns if count <= _MAX_BINS else 0


def _parts(seen: FlowView, bin_ns: int) -> Array:
    """Bytes per tenth of a bin; of narrower bins than `_width_ns` as many as suffice, from the beginning."""
    rows, (start, end) = seen.into, seen.steady_ns
    end = min(end, start + _MAX_BINS * bin_ns)
    count, number, total = whole_bins(rows["time_ns"], rows["wire_bytes"], start, end, bin_ns // _BEGUN)
    dense = np.zeros(count)
    dense[number] = total
    return dense


def _peak(swing: Array) -> tuple[float, float]:
    """(lag, correlation) of the first of the high peaks behind the first zero crossing; (0, 0) without one."""
    count, lags = len(swing), np.arange(len(swing) // 3 + 1)
    size = 1 << (2 * count - 1).bit_length()
    correlation = 2 * np.fft.irfft(np.abs(np.fft.rfft(swing, size)) ** 2, size)[: len(lags)]
    energy = np.concatenate([[0.0], np.cumsum(np.square(swing))])
    correlation /= np.maximum(energy[count - lags] + energy[count] - energy[lags], np.finfo(float).tiny)
    below = np.flatnonzero(correlation < 0)
    if not len(below):
        return 0.0, 0.0
    behind = np.where(lags >= below[0], correlation, -1.0)
    first = int(np.argmax(behind >= _HIGHEST * behind.max()))
    ends = below[below > first]
    lag = first + int(np.argmax(behind[first : ends[0] if len(ends) else None]))
    return _vertex(correlation, lag), min(float(correlation[lag]), 1.0)


def _vertex(values: Array, at: int) -> float:
    """Where the parabola through a peak and its neighbours is highest."""
    if not 0 < at < len(values) - 1:
        return float(at)
    before, peak, after = values[at - 1 : at + 2]
    bend = before - 2 * peak + after
    return float(at + (before - after) / (2 * bend) if bend < 0 else at)


def compute(records: Records, flow: str) -> dict[str, Number]:
    seen = view(records, flow)
    period = amplitude = strength = NAN
    bin_ns = _width_ns(seen)
    parts = _parts(seen, bin_ns) if bin_ns else np.zeros(0)
    if len(parts) >= 8 * _BEGUN and parts.any():
        dense = parts[: len(parts) // _BEGUN * _BEGUN].reshape(-1, _BEGUN).sum(axis=1)
        amplitude = float(np.subtract(*np.percentile(dense, [95, 5]))) / 2 * 8e9 / bin_ns
        if dense.any() and dense.std() / dense.mean() >= _STEADY_CV:
            lag, strength = _swing(parts)
            while strength >= _WEAK and lag < _RESOLVED * _BEGUN and bin_ns > 10**6:
                bin_ns //= 10
                lag, strength = max((lag * 10, strength), _swing(_parts(seen, bin_ns)), key=lambda swing: swing[1])
            if strength >= _WEAK:
                period = lag * bin_ns / _BEGUN / 1e6
    return {"oscillation_period_ms": period, "oscillation_amplitude_bps": amplitude, "oscillation_strength": strength}


def _swing(parts: Array) -> tuple[float, float]:
    """(period in tenths of a bin, correlation)"""
    dense = np.convolve(parts, np.ones(_BEGUN), "valid")
    dense = np.clip(dense, *np.percentile(dense, [5, 95]))
    return _peak(dense - dense.mean())
