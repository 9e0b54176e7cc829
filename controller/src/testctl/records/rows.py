# SPDX-License-Identifier: Apache-2.0
"""Rows of the packets table: by what they belong to, and columns at some of them.

By the C code of native/ where there are many, and a compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from testctl.records.native import if_compiled
from testctl.records.native.structures import Grouping
from testctl.records.schema import Array, Bools, Ints

_FEW = 1000
_FEW_GROUPS = 64


def take(column: Array, rows: Array) -> Array:
    """A column of numbers at rows that it has, whose numbers are of 32 or 64 bits."""
    library = if_compiled() if len(rows) > _FEW else None
    if library is None or not _plain(column) or not _plain(rows):
        return np.asarray(column[rows])  # faster than take() by an index of 32 bits
    found = np.empty(len(rows), column.dtype)
    at, to = rows.ctypes.data, found.ctypes.data
    done = library.take(column.ctypes.data, column.itemsize, len(column), at, rows.itemsize, len(rows), to)
    if done < len(rows):
        raise IndexError(f"want rows below {len(column)}; got {int(rows[done])}")
    return found


def _plain(column: Array) -> bool:
    return bool(column.flags.c_contiguous) and column.dtype.kind in "iub"


def grouped(
    flow: Array, where: Array, direction: Array, out: Bools, flows: int, wheres: int
) -> Iterator[tuple[int, Array]]:
    """(group, its rows, ascending) of each group that has any, ascending.

    flow, where: codes below `flows` and `wheres`; a group is ((flow * wheres + where) * 2 + direction) * 2 + out
    """
    groups = flows * wheres * 4
    library = if_compiled() if _FEW < len(flow) < 1 << 31 else None
    if library is None:
        yield from _grouped(flow, where, direction, out, wheres, groups)
        return
    flow, where, direction = (
        np.ascontiguousarray(*pair) for pair in ((flow, np.int16), (where, np.int16), (direction, np.int8))
    )
    out = np.ascontiguousarray(out, np.bool_)
    ends, rows = np.empty(groups, np.int64), np.empty(len(flow), np.int32)
    columns = {"flow": flow, "where": where, "direction": direction, "out": out, "ends": ends, "rows": rows}
    at = {name: column.ctypes.data for name, column in columns.items()}
    library.group(Grouping(**at, count=len(flow), places=wheres, groups=groups))
    for group in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield group, rows[ends[group - 1] if group else 0 : ends[group]]


def _grouped(
    flow: Array, where: Array, direction: Array, out: Bools, wheres: int, groups: int
) -> Iterator[tuple[int, Ints]]:
    """`grouped` by numpy.  Few groups are looked for one by one, which takes less memory than sorting."""
    key: Any = flow.astype(np.uint8 if groups <= 1 << 8 else np.uint16 if groups <= 1 << 16 else np.int64)
    for factor, column in ((wheres, where), (2, direction), (2, out)):
        key *= key.dtype.type(factor)
        key += column.astype(key.dtype)
    if groups <= _FEW_GROUPS:
        yield from ((value, rows) for value in range(groups) if len(rows := np.flatnonzero(key == value)))
        return
    order = np.argsort(key, kind="stable")  # 16 bits sort by radix
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    yield from ((int(key[rows[0]]), rows) for rows in np.split(order, cuts))
