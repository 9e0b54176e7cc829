# SPDX-License-Identifier: Apache-2.0
"""One point for the page: what was asked, what came out, its stalls, and its figures in a window of time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from testctl.metrics.stalls.table import ENDS
from testctl.records.schema import FATES
from testctl.report.stalls import cause_in_words
from testctl.report.style import show_metric, show_time
from testctl.results import RunPoint, layout
from testctl.serve import listing
from testctl.serve.cache import Cache, stamp
from testctl.serve.derived import derive
from testctl.serve.figures import FIGURES, Asked, there
from testctl.serve.runs import point_of
from testctl.serve.source import Source, read_source
from testctl.serve.tables import Key, quoted
from testctl.serve.thin import Window

MOST_STALLS = 1000
"""Stalls in the list, the longest ones."""

MOST_PACKETS = 300
"""Packets in the table of a window."""

_AT_ONCE = 4
"""Queries that run at the same time; more would only wait for each other."""

_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
_ECN = ("", "ECT(1)", "ECT(0)", "CE")


class Points:
    """Points of all runs, through one DuckDB that sees results/ alone; a cursor for every request."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._duckdb = duckdb.connect()
        self._duckdb.execute("set autoinstall_known_extensions = false; set autoload_known_extensions = false")
        self._duckdb.execute("set memory_limit = '1GB'; set temp_directory = ''")
        self._duckdb.execute("set allowed_directories = [?]".replace("?", quoted(root)))
        self._duckdb.execute("set enable_external_access = false; set lock_configuration = true")
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._sources, self._derived = Cache(3), Cache(3)
        self._drawn = Cache(256)

    def page(self, run: str, point: str) -> dict[str, Any]:
        """A point without its figures.  Raises Unknown, PlanError."""
        place = listing.point_path(listing.run_path(self._root, run), point)
        found, source = point_of(place), self._source(place)
        return {
            "run": place.parents[1].name,
            "id": found.id,
            "verdict": found.verdict,
            "reason": found.reason,
            "digest": found.digest,
            "tuples": [[entity, parameter, _shown(value)] for entity, parameter, value in found.tuples],
            "metrics": _metrics(found),
            "virtual": show_time(found.virtual_s * 1e9),
            "wall": show_time(found.wall_s * 1e9),
            "packets": source.count,
            "duration_ns": source.duration_ns if source.count else 0,
            "lanes": [f"{flow}/{conn}" for flow, conn in source.lanes],
            "lanes_in_all": source.lanes_in_all,
            "flows": [flow.name for flow in source.flows],
            "figures": there(source),
            "stalls": self._stalls(source),
        }

    def figure(self, run: str, point: str, name: str, window: Window, lane: str) -> dict[str, Any]:
        """One figure of a point in a window.  Raises Unknown, PlanError."""
        place = listing.point_path(listing.run_path(self._root, run), point)
        source = self._source(place)
        chosen = _lane(source, lane)
        if name not in FIGURES or name not in there(source) or chosen is None:
            raise listing.Unknown(f"point {point[:100]} has no figure {name[:50]!r} of {lane[:50]!r}")

        def draw() -> dict[str, Any]:
            with self._turns:
                cursor = self._duckdb.cursor()
                try:
                    return FIGURES[name](Asked(source, window, chosen, cursor, lambda: self.derived(source)))
                finally:
                    cursor.close()

        return self._drawn.get((place, name, window, chosen), _version(source), draw)

    def derived(self, source: Source) -> pa.Table:
        """Latency, round trips and own queue of a point, computed once."""

        def make() -> pa.Table:
            cursor = self._duckdb.cursor()
            try:
                return derive(source, cursor)
            finally:
                cursor.close()

        return self._derived.get(source.path, _version(source), make)

    def packets(self, run: str, point: str, window: Window, lane: str) -> dict[str, Any]:
        """The first packets of a window in words, in order of time."""
        source = self._source(listing.point_path(listing.run_path(self._root, run), point))
        chosen = _lane(source, lane)
        if source.packets is None or chosen is None:
            return {"rows": [], "more": False}
        keys = source.packets.keys
        roles = ", ".join(str(role) for role, key in enumerate(keys) if key[1] == chosen[0])
        sql = f"""select time_ns, role, seq, ack, length, flags, ecn, retrans, queue_bytes, fate
                  from {source.packets.name} where role in ({roles}) and conn = {chosen[1]}
                  and time_ns >= {window.from_ns} and time_ns < {window.to_ns} order by r limit {MOST_PACKETS + 1}"""
        with self._turns:
            cursor = self._duckdb.cursor()
            try:
                rows = cursor.execute(sql).fetchall()
            finally:
                cursor.close()
        return {
            "rows": [_in_words(keys[row[1]], row) for row in rows[:MOST_PACKETS]],
            "more": len(rows) > MOST_PACKETS,
        }

    def _source(self, place: Path) -> Source:
        version = tuple(stamp(place / name) for name in (layout.POINT, layout.PACKETS, layout.TCP_INFO, layout.STALLS))

        return self._sources.get(place, version, lambda: read_source(place, self._duckdb))

    def _stalls(self, source: Source) -> dict[str, Any]:
        path = source.files.get(layout.STALLS)
        if path is None:
            return {"rows": [], "in_all": 0}
        with self._turns:
            cursor = self._duckdb.cursor()
            try:
                # The rows that are shown alone: what is fetched does not count for DuckDB's limit of memory.
                longest = f"select * from read_parquet(?) order by length_ns desc limit {MOST_STALLS}"
                table = cursor.execute(longest, [str(path)])
                names = [column[0] for column in table.description]
                rows = [dict(zip(names, row, strict=True)) for row in table.fetchall()]
                (in_all,) = cursor.execute("select count(*) from read_parquet(?)", [str(path)]).fetchall()[0]
            finally:
                cursor.close()
        shown = sorted(rows, key=lambda row: (row["start_ns"], row["flow"], row["conn"]))
        return {"rows": [_stall(row) for row in shown], "in_all": in_all}


def _version(source: Source) -> tuple[Any, ...]:
    return tuple(stamp(path) for path in source.files.values())


def _lane(source: Source, text: str) -> tuple[str, int] | None:
    """A connection that the point has, or the first one where none is named."""
    for flow, conn in source.lanes:
        if not text or text == f"{flow}/{conn}":
            return flow, conn
    return None


def _shown(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _metrics(point: RunPoint) -> dict[str, Any]:
    flows = list(point.metrics)
    names = sorted({metric for values in point.metrics.values() for metric in values})
    rows = [[name, *(_cell(name, value) for value in _of(point, name, flows))] for name in names]
    return {"flows": ["all" if flow == "*" else flow for flow in flows], "rows": rows}


def _cell(metric: str, value: float | str | None) -> dict[str, Any]:
    return {"value": _number(value), "shown": show_metric(metric, value), "text": isinstance(value, str)}


def _of(point: RunPoint, metric: str, flows: Sequence[str]) -> list[float | str | None]:
    return [point.metrics[flow].get(metric) for flow in flows]


def _number(value: float | str | None) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _stall(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lane": f"{row['flow']}/{row['conn']}",
        "start_ns": row["start_ns"],
        "end_ns": row["end_ns"],
        "length": show_time(row["length_ns"]),
        "cause": str(row["cause"]).replace("_", " "),
        "why": cause_in_words(row["cause"]),
        "ended": ENDS.get(row["ended_by"], str(row["ended_by"])),
        "proof": str(row["proof"]),
    }


def _in_words(key: Key, row: Sequence[Any]) -> dict[str, Any]:
    where, _, direction, out = key
    time_ns, _, seq, ack, length, flags, ecn, retrans, queue_bytes, fate = row
    notes = [_ECN[ecn] if 0 <= ecn < len(_ECN) else ""]
    notes += ["retransmission"] if retrans and length else []
    notes += [FATES[fate].replace("_", " ")] if 0 < fate < len(FATES) else []
    notes += [f"queue {queue_bytes} B"] if queue_bytes >= 0 else []
    return {
        "time_ns": time_ns,
        "where": where,
        "way": ("→" if direction == 0 else "←") + (" out" if out else " in"),
        "data": f"{seq}:{seq + length}" if length else "",
        "ack": str(ack) if ack >= 0 else "",
        "flags": " ".join(name for bit, name in enumerate(_FLAGS) if flags >> bit & 1),
        "notes": ", ".join(note for note in notes if note),
    }
