# SPDX-License-Identifier: Apache-2.0
"""Rows of the packets table: groups of them, columns at some of them, and searches in columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from testctl.records.native import library
from testctl.records.native.structures import Grouping
from testctl.records.schema import Array, Bools, Ints

_FEW = 1000
_SEARCH_SHARE = 64


def take(column: Array, rows: Array) -> Array:
    """A column of numbers at rows that it has, whose numbers are of 32 or 64 bits."""
    if len(rows) <= _FEW or not _plain(column) or not _plain(rows):
        return np.asarray(column[rows])  # faster than take() by an index of 32 bits
    values = np.empty(len(rows), column.dtype)
    at, to = rows.ctypes.data, values.ctypes.data
    done = library().take(column.ctypes.data, column.itemsize, len(column), at, rows.itemsize, len(rows), to)
    if done < len(rows):
        raise IndexError(f"want rows below {len(column)}; got {int(rows[done])}")
    return values


def _plain(column: Array) -> bool:
    return bool(column.flags.c_contiguous) and column.dtype.kind in "iub"


def grouped(
    flow: Array, where: Array, direction: Array, out: Bools, flows: int, wheres: int
) -> Iterator[tuple[int, Array]]:
    """(group, its rows, ascending) of each group that has any, ascending.

    flow, where: codes below `flows` and `wheres`; a group is ((flow * wheres + where) * 2 + direction) * 2 + out
    """
    groups = flows * wheres * 4
    flow, where, direction = (
        np.ascontiguousarray(*pair) for pair in ((flow, np.int16), (where, np.int16), (direction, np.int8))
    )
    out = np.ascontiguousarray(out, np.bool_)
    ends, rows = np.empty(groups, np.int64), np.empty(len(flow), np.int32)
    columns = {"flow": flow, "where": where, "direction": direction, "out": out, "ends": ends, "rows": rows}
    at = {name: column.ctypes.data for name, column in columns.items()}
    library().group(Grouping(**at, count=len(flow), places=wheres, groups=groups))
    for group in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield group, rows[ends[group - 1] if group else 0 : ends[group]]


def search(ordered: Array, values: Array, side: Literal["left", "right"] = "left") -> Ints:
    """numpy's searchsorted: where each value would be put into an ascending column of integers.

    Many values, which are nearly in order in columns of packets, take a walk; a few, numpy.
    """
    if len(values) <= max(_FEW, len(ordered) // _SEARCH_SHARE):
        return np.searchsorted(ordered, values, side=side)
    line, numbers = (np.ascontiguousarray(column, np.int64) for column in (ordered, values))
    places = np.empty(len(numbers), np.int64)
    library().search(
        line.ctypes.data, len(line), numbers.ctypes.data, len(numbers), side == "right", places.ctypes.data
    )
    return places
