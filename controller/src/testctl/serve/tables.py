# SPDX-License-Identifier: Apache-2.0
"""A point's packets as a DuckDB table that is quick to cut: few columns, in memory, in order of time.

A Parquet file has a million rows in a piece, all of which are unpacked whatever the window; a table in memory has
pieces of 122,880 rows, and those outside the window are not looked at.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

MOST_IN_MEMORY = 5_000_000
"""Packets of a point (48 bytes each) beyond which every query reads the Parquet file instead."""

Key = tuple[str, str, int, bool]
"""(where, flow, direction, out)"""

_KEYS = """
select "where", flow, direction, out, conn, sum(length), count(*), max(time_ns), sum(wire_bytes)
from read_parquet(?) group by all order by all
"""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Group:
    """Sums over the packets of one connection that one place saw going one way."""

    key: Key
    conn: int
    length: int
    packets: int
    last_ns: int
    wire_bytes: int


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets of a point: `name` is a table or view of (time_ns, role, conn, seq, …, r).

    roles   the number that `role` has for a Key
    groups  sums, by key and connection
    r       the row's number in the file, which is in order of time
    """

    name: str
    roles: Mapping[Key, int]
    groups: tuple[Group, ...]

    @property
    def keys(self) -> list[Key]:
        """The Key of each role."""
        return list(self.roles)


def open_packets(database: duckdb.DuckDBPyConnection, path: Path) -> Packets:
    """The packets of a file; the table goes when nobody holds it any more.  Raises duckdb.Error."""
    cursor = database.cursor()
    rows = cursor.execute(_KEYS, [str(path)]).fetchall()
    groups = tuple(Group((w, f, int(d), bool(o)), int(c), *map(int, sums)) for w, f, d, o, c, *sums in rows)
    roles = {key: role for role, key in enumerate(sorted({group.key for group in groups}))}
    number = next(_numbers)
    name = f"packets_{number}"
    many = sum(group.packets for group in groups) > MOST_IN_MEMORY
    kind = "view" if many else "table"
    cursor.execute(
        f'create table roles_{number} (role usmallint, "where" varchar, flow varchar, direction tinyint, out boolean)'
    )
    if roles:
        said = [[role, *key] for key, role in roles.items()]
        cursor.executemany(f"insert into roles_{number} values (?, ?, ?, ?, ?)", said)
    cursor.execute(
        f"""create {kind} {name} as
            select p.time_ns, k.role, p.conn, p.seq, p.ack, p.length, p.wire_bytes, p.flags, p.ecn, p.retrans,
                   p.queue_bytes, p.fate, p.file_row_number::integer as r
            from read_parquet({quoted(path)}, file_row_number = true) p
            join roles_{number} k on p."where" = k."where" and p.flow = k.flow and p.direction = k.direction
                 and p.out = k.out"""
    )
    cursor.close()
    found = Packets(name, roles, groups)
    weakref.finalize(found, _drop, database, kind, name, number)
    return found


def quoted(path: Path) -> str:
    """A path as an SQL literal."""
    return "'" + str(path).replace("'", "''") + "'"


def _drop(database: duckdb.DuckDBPyConnection, kind: str, name: str, number: int) -> None:
    cursor: Any = database.cursor()
    cursor.execute(f"drop {kind} if exists {name}")
    cursor.execute(f"drop table if exists roles_{number}")
    cursor.close()
