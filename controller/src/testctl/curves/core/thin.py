# SPDX-License-Identifier: Apache-2.0
"""Fewer points, same picture.

M4: of every bucket of time the first, the last, the least and the greatest value, which draws the same picture as
all of them (Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).
"""

from __future__ import annotations

import numpy as np

from testctl.records.schema import Array, Ints


def m4(time_ns: Array, value: Array, start_ns: float, bucket_ns: float) -> Ints:
    """Indices, ascending, of the first, least, greatest and last of every bucket [start + k * bucket, …).

    time_ns ascending.  Of equal extremes the first.
    """
    count = len(time_ns)
    if not count:
        return np.empty(0, dtype=np.int64)
    bucket = (time_ns - start_ns) // bucket_ns
    first = np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1))
    ends = np.append(first[1:], count)

    def where(extreme: np.ufunc) -> Ints:
        hits = np.flatnonzero(value == np.repeat(extreme.reduceat(value, first), ends - first))
        _, once = np.unique(np.searchsorted(first, hits, side="right"), return_index=True)
        return hits[once]

    return np.unique(np.concatenate([first, where(np.minimum), where(np.maximum), ends - 1]))


def envelope(time_ns: Array, value: Array, most: int) -> Ints:
    """Indices of at most `most` (4 at least) of the samples: M4 of most/4 equal buckets; all when there are no more."""
    if len(time_ns) <= most:
        return np.arange(len(time_ns), dtype=np.int64)
    span = time_ns[-1] - time_ns[0] + 1
    return m4(time_ns, value, time_ns[0], -(-span // max(most // 4, 1)))
