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
    """{line: (times ns, values, how many rows they stand for)} of `rows`, a query of (line text, t, y)."""
    sql = f"""
        select line, (t - {window.low}) // {window.bucket} as b, count(*) as n, min(t), max(t),
               arg_min(y, t), arg_max(y, t), arg_min(t, y), arg_max(t, y), min(y), max(y)
        from ({rows}) where t >= {window.low} and t < {window.high} group by line, b order by line, b"""
    columns = list(cursor.execute(sql, list(parameters)).fetchnumpy().values())
    if not len(columns[0]):
        return {}
    names = np.asarray(columns[0], dtype=object)
    first, last, first_y, last_y, least_at, most_at, least, most = (np.asarray(column) for column in columns[3:])
    cuts = np.flatnonzero(names[1:] != names[:-1]) + 1
    found = {}
    for part in np.split(np.arange(len(names)), cuts):
        t = np.concatenate([first[part], least_at[part], most_at[part], last[part]])
        y = np.concatenate([first_y[part], least[part], most[part], last_y[part]])
        kind = np.repeat(np.arange(4), len(part))
        order = np.lexsort((kind, t))
        t, y = t[order], y[order]
        keep = np.append(True, (np.diff(t) != 0) | (np.diff(y) != 0))
        found[str(names[part[0]])] = (t[keep], y[keep], int(np.asarray(columns[2])[part].sum()))
    return found
