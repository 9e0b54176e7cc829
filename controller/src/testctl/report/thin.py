# SPDX-License-Identifier: Apache-2.0
"""Fewer points, same picture: an envelope that keeps every extreme."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def envelope(t: npt.NDArray[np.generic], y: npt.NDArray[np.generic], most: int) -> Index:
    """Indices of at most `most` points of y(t), t ascending: in each of most/4 equal spans of time the
    first, the least, the greatest and the last.  All indices when there are no more than `most`.
    """
    count = len(t)
    if count <= most:
        return np.arange(count, dtype=np.int64)
    spans = max(most // 4, 1)
    start, whole = float(t[0]), float(t[-1]) - float(t[0])
    if whole <= 0:
        return np.unique(np.array([0, int(np.argmin(y)), int(np.argmax(y)), count - 1], dtype=np.int64))
    span = np.minimum(((t.astype(np.float64) - start) * (spans / whole)).astype(np.int64), spans - 1)
    first = np.flatnonzero(np.diff(span, prepend=-1))
    last = np.append(first[1:], count) - 1
    by_value = np.lexsort((y, span))
    return np.unique(np.concatenate([first, last, by_value[first], by_value[last]]))


def near(t: npt.NDArray[np.int64], moments: list[int], each_side: int) -> Index:
    """Indices of the `each_side` points before and after each moment, t ascending."""
    found = [np.arange(max(p - each_side, 0), min(p + each_side, len(t))) for p in np.searchsorted(t, moments)]
    return np.unique(np.concatenate(found)).astype(np.int64) if found else np.empty(0, dtype=np.int64)
