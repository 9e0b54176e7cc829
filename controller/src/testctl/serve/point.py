# SPDX-License-Identifier: Apache-2.0
"""One point for the page: what was asked, what came out, its stalls, and its figures in a window of time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from testctl.charts.time_sequence import FLAGS
from testctl.compare.packet import first_difference
from testctl.curves import Lane, Window
from testctl.records.schema import FATES
from testctl.report.completions import point_charts
from testctl.report.point_page import chart_of, point_events, point_page
from testctl.results import layout
from testctl.serve import listing
from testctl.serve.cache import Cache, stamp
from testctl.serve.files import files
from testctl.serve.runs import point_of
from testctl.serve.source import Source, read_source

MAX_LANES = 200
"""Connections that can be chosen: those with most bytes."""

MAX_PACKETS = 300
"""Packets in the table of a window."""

_COLUMNS = (
    "time_ns", "direction", "out", "seq", "ack", "length", "flags", "ecn", "retrans", "queue_bytes", "fate",
)  # fmt: skip
_ECN = ("", "ECT(1)", "ECT(0)", "CE")


class Points:
    """Points of all runs; what was read of a point is kept while its files are the same."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sources, self._drawn = Cache(3), Cache(256)

    def page(self, run: str, point: str) -> dict[str, Any]:
        """A point without its figures.  Raises Unknown, PlanError."""
        place = listing.point_path(listing.run_path(self._root, run), point)
        found, source = point_of(place), self._source(place)
        with source.lock:
            lanes, figures, duration_ns = source.lanes, source.figures, source.duration_ns
        return point_page(found) | {
            "run": place.parents[1].name,
            "packets": source.count,
            "requests": source.requests,
            "duration_ns": duration_ns,
            "lanes": [f"{flow}/{conn}" for flow, conn in lanes[:MAX_LANES]],
            "lanes_in_all": len(lanes),
            "figures": figures,
            "stalls": {"rows": [stall.to_json() for stall in source.stalls], "in_all": source.stalls_in_all},
            "files": list(files(place).items()),
        }

    def events(self, run: str, point: str) -> dict[str, Any]:
        """Recoveries, fates and the distribution of latency; none without packets.  Raises Unknown, PlanError."""
        place = listing.point_path(listing.run_path(self._root, run), point)
        source = self._source(place)

        def read() -> dict[str, Any]:
            with source.lock:
                return point_events(point_of(place), source.records) if source.records and source.count else {}

        return self._drawn.get((place, "events"), _version(source), read)

    def figure(self, run: str, point: str, name: str, window: Window, lanes: str, bin_ns: int = 0) -> dict[str, Any]:
        """One figure of a point in a window.

        lanes  connections by name, apart by commas; "": the first
        Raises Unknown, PlanError.
        """
        place = listing.point_path(listing.run_path(self._root, run), point)
        source = self._source(place)

        def draw() -> dict[str, Any]:
            with source.lock:
                chosen = [lane for text in lanes.split(",") if (lane := _lane(source, text)) is not None]
                if source.records is None or name not in source.figures or not chosen:
                    raise listing.Unknown(f"point {point[:100]} has no figure {name[:50]!r} of {lanes[:50]!r}")
                return chart_of(source.records, name, chosen, window, source.stalls, source.answers, bin_ns).to_json()

        return self._drawn.get((place, name, window, lanes, bin_ns), _version(source), draw)

    def requests(self, run: str, point: str) -> dict[str, Any]:
        """The figures of a point's requests, which need no packets.  Raises Unknown, PlanError."""
        place = listing.point_path(listing.run_path(self._root, run), point)
        source = self._source(place)

        def draw() -> dict[str, Any]:
            with source.lock:
                charts = [] if source.records is None else point_charts(source.records)
                charts = charts[1:] if source.count else charts  # with packets the board has them over time
                return {"figures": [chart.to_json() for chart in charts]}

        return self._drawn.get((place, "requests"), _version(source), draw)

    def first_difference(self, *points: tuple[str, str]) -> dict[str, Any]:
        """The first packet, or else event or sample of TCP, that differs between two points, each (run, id).

        `words` is a sentence, `time_ns` where it is.  Raises Unknown, PlanError.
        """
        places = [listing.point_path(listing.run_path(self._root, run), point) for run, point in points]
        first, second = (self._source(place) for place in places)

        def read() -> dict[str, Any]:
            difference = first_difference(*places)
            return {"words": difference.words(), "time_ns": difference.time_ns}

        return self._drawn.get((*places, "first difference"), (_version(first), _version(second)), read)

    def packets(self, run: str, point: str, window: Window, lane: str) -> dict[str, Any]:
        """The first packets of a window in words, in order of time."""
        source = self._source(listing.point_path(listing.run_path(self._root, run), point))
        with source.lock:
            chosen, records = _lane(source, lane), source.records
            if records is None or chosen is None:
                return {"rows": [], "more": False}
            low, high = np.searchsorted(records.column("time_ns"), [window.from_ns, window.to_ns])
            (flows, names), (wheres, places) = records.codes("flow"), records.codes("where")
            mine = (flows[low:high] == names.index(chosen[0])) & (records.column("conn")[low:high] == chosen[1])
            index = low + np.flatnonzero(mine)[: MAX_PACKETS + 1]
            columns = {name: records.values(name, index).tolist() for name in _COLUMNS}
            columns["where"] = [places[code] for code in wheres[index]]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {"rows": [_in_words(row) for row in rows[:MAX_PACKETS]], "more": len(rows) > MAX_PACKETS}

    def _source(self, place: Path) -> Source:
        version = tuple(
            stamp(place / name)
            for name in (layout.POINT, layout.PACKETS, layout.TCP_INFO, layout.STALLS, layout.REQUESTS)
        )
        return self._sources.get(place, version, lambda: read_source(place))


def _version(source: Source) -> tuple[Any, ...]:
    return tuple(stamp(path) for path in source.files.values())


def _lane(source: Source, text: str) -> Lane | None:
    """A connection that the point has, or the first one where none is named."""
    for flow, conn in source.lanes:
        if not text or text == f"{flow}/{conn}":
            return flow, conn
    return None


def _in_words(row: Mapping[str, Any]) -> dict[str, Any]:
    seq, length, ecn, fate = row["seq"], row["length"], row["ecn"], row["fate"]
    notes = [_ECN[ecn] if 0 <= ecn < len(_ECN) else ""]
    notes += ["retransmission"] if row["retrans"] and length else []
    notes += [FATES[fate].replace("_", " ")] if 0 < fate < len(FATES) else []
    notes += [f"queue {row['queue_bytes']} B"] if row["queue_bytes"] >= 0 else []
    return {
        "time_ns": row["time_ns"],
        "where": row["where"],
        "way": ("→" if row["direction"] == 0 else "←") + (" out" if row["out"] else " in"),
        "data": f"{seq}:{seq + length}" if length else "",
        "ack": str(row["ack"]) if row["ack"] >= 0 else "",
        "flags": " ".join(name for bit, name in enumerate(FLAGS) if row["flags"] >> bit & 1),
        "notes": ", ".join(note for note in notes if note),
    }
