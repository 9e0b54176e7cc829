# SPDX-License-Identifier: Apache-2.0
"""numpy's searchsorted for columns of packets, which are nearly in order."""

from __future__ import annotations

from typing import Literal

import numpy as np

from testctl.records.native import library
from testctl.records.schema import Array, Ints

_FEW, _SHARE = 1000, 64


def search(ordered: Array, values: Array, side: Literal["left", "right"] = "left") -> Ints:
    """Where each value would be put into an ascending column of integers.

    Many that are nearly in order are found by a walk, a few by numpy.
    """
    if len(values) <= max(_FEW, len(ordered) // _SHARE):
        return np.searchsorted(ordered, values, side=side)
    line, asked = (np.ascontiguousarray(column, np.int64) for column in (ordered, values))
    places = np.empty(len(asked), np.int64)
    library().search(line.ctypes.data, len(line), asked.ctypes.data, len(asked), side == "right", places.ctypes.data)
    return places
