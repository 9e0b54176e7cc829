# SPDX-License-Identifier: Apache-2.0
"""Millions of rows in as many points as a screen can show, by DuckDB.

M4: of every bucket of time the first, the last, the least and the greatest value, which draws the same
picture as all of them (Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation", VLDB 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from testctl_agent.spec.errors import PlanError

if TYPE_CHECKING:
    import duckdb

LONGEST_NS = 1 << 52
"""Farthest time from T0 that is asked for: a number that JavaScript holds exactly."""

EXACT = 3000
"""Rows that are given one by one instead of being thinned."""

_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Window:
    """What of a point is on the screen, [from_ns, to_ns), in so many buckets.

    low, high: what is fetched: half a window more at each side, so that a little panning has something to show,
    or `reach`, where that is given.
    """

    from_ns: int
    to_ns: int
    buckets: int
    reach: tuple[int, int] | None = None

    @classmethod
    def parse(cls, start: str, end: str, buckets: str) -> Window:
        """From what an address says.  Raises PlanError."""
        try:
            found = cls(int(start), int(end), min(max(int(buckets), 50), 2000))
        except ValueError as error:
            raise PlanError(f"from, to, px: want whole numbers; got {start!r}, {end!r}, {buckets!r}") from error
        if not -LONGEST_NS < found.from_ns < found.to_ns < LONGEST_NS:
            raise PlanError(f"from, to: want from < to, in ns; got {start}, {end}")
        return found

    @property
    def span(self) -> int:
        return self.to_ns - self.from_ns

    @property
    def low(self) -> int:
        return self.reach[0] if self.reach else self.from_ns - self.span // 2

    @property
    def high(self) -> int:
        return self.reach[1] if self.reach else self.to_ns + self.span // 2

    @property
    def bucket(self) -> int:
        """Width of a bucket in ns."""
        return max(-(-self.span // self.buckets), 1)


def round_width(ns: int) -> int:
    """The least of 1, 2, 5, 10, 20, … ns that is not below `ns`."""
    size = 1
    while True:
        for step in _STEPS:
            if step * size >= ns:
                return step * size
        size *= 10


def m4(
    cursor: duckdb.DuckDBPyConnection, rows: str, parameters: Sequence[Any], window: Window
) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]]:
    """{line: (times ns, values, how many rows they stand for)} of `rows`, a query of (line, t, y, r).

    r is the row's number in order of time: it says which of several at one instant came first.  A row whose line
    is null is left out.
    """
    sql = f"""
        select line, (t - {window.low}) // {window.bucket} as b, count(*) as n,
               min(t), arg_min(t, y), arg_max(t, y), max(t),
               min(r), arg_min(r, y), arg_max(r, y), max(r),
               arg_min(y, r), min(y), max(y), arg_max(y, r)
        from ({rows}) where line is not null and t >= {window.low} and t < {window.high}
        group by line, b order by line, b"""
    columns = list(cursor.execute(sql, list(parameters)).fetchnumpy().values())
    if not len(columns[0]):
        return {}
    if int(np.asarray(columns[2]).sum()) <= EXACT:
        return _all(cursor, rows, parameters, window)
    names, counts = np.asarray(columns[0], dtype=object), np.asarray(columns[2])
    times, rank, values = (np.stack([np.asarray(column) for column in columns[at : at + 4]]) for at in (3, 7, 11))
    cuts = np.flatnonzero(names[1:] != names[:-1]) + 1
    found = {}
    for part in np.split(np.arange(len(names)), cuts):
        _, kept = np.unique(rank[:, part].ravel(), return_index=True)
        t, y = times[:, part].ravel()[kept], values[:, part].ravel()[kept]
        found[str(names[part[0]])] = (t, y, int(counts[part].sum()))
    return found


def _all(
    cursor: duckdb.DuckDBPyConnection, rows: str, parameters: Sequence[Any], window: Window
) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]]:
    inside = f"line is not null and t >= {window.low} and t < {window.high}"
    sql = f"select line, t, y from ({rows}) where {inside} order by line, r"
    names, t, y = (np.asarray(column) for column in cursor.execute(sql, list(parameters)).fetchnumpy().values())
    cuts = np.flatnonzero(names[1:] != names[:-1]) + 1
    parts = np.split(np.arange(len(names)), cuts)
    return {str(names[part[0]]): (t[part], y[part], len(part)) for part in parts}
