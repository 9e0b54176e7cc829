# SPDX-License-Identifier: Apache-2.0
"""What report.html has of a point's packets: the answers that serve would give, for windows chosen here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.core.temporal import Answers
from testctl.curves import Lane, Window, curves, figures, lanes, lines_of, shown_ns
from testctl.records import PACKETS, TCP_INFO, Records
from testctl.report.completions import point_charts
from testctl.report.packed import rounded
from testctl.report.point_page import chart_of, lane_text, point_events, recoveries
from testctl.report.stalls import Stall, read_stalls
from testctl.results import RunPoint

BINS_NS = (1_000_000, 10_000_000, 100_000_000)
"""Widths of a rate's bins that can be chosen: in an export those that make at most COLUMNS bins of a point."""

MAX_LANES = 8
"""Connections that can be chosen."""

COLUMNS = 800
"""Columns of a whole point's figure, each with at most 4 values of a line; connections after the first share as many
again."""

PROVEN = 20
"""Stalls, the longest ones, around which every packet is there."""

EACH_SIDE = 20
"""Packets at each side of such a moment."""

MAX_VIEWS = 12
"""Recoveries of a connection that have every packet."""

Near = tuple[Lane, tuple[int, int]]
"""A window in which every packet is there."""


def embedded(point: RunPoint) -> dict[str, Any] | None:
    """{"page", "events", "figures", "requests"} as serve answers them; None if the point has no records of either.

    figures  {name: [{"lanes", "from", "to", "answer"}]}: the whole point, and windows in which each packet is
    """
    records, table = point.records(), point.requests()
    count = table.num_rows if table is not None else 0
    if records is None or not records.packets.num_rows:
        charts = [chart.to_json() for chart in point_charts(_of_requests(point, table))] if count else []
        return {"page": {"requests": count}, "requests": {"figures": charts}} if count else None
    end_ns = shown_ns(point.point, int(records.column("time_ns").max()))
    there, silences = lanes(records), point.stalls()
    stalls = read_stalls(silences, records.packets)
    chosen = there[:MAX_LANES]
    return {
        "page": {
            "packets": records.packets.num_rows,
            "requests": count,
            "duration_ns": end_ns,
            "lanes": [lane_text(lane) for lane in chosen],
            "lanes_in_all": len(there),
            "figures": list(figures(records)),
            "stalls": {"rows": [stall.to_json() for stall in stalls], "in_all": silences.num_rows if silences else 0},
        },
        "events": point_events(point, records),
        "figures": _figures(records, chosen, end_ns, stalls, point.answers),
        "requests": {"figures": [chart.to_json() for chart in point_charts(records)[1:]] if count else []},
    }


def _of_requests(point: RunPoint, requests: pa.Table | None) -> Records:
    """Records without packets."""
    outcome, spec = Outcome.from_json(dict(point.outcome)), PointSpec.from_json(point.point)
    return Records(PACKETS.empty_table(), TCP_INFO.empty_table(), {}, outcome, spec, requests=requests)


def _figures(
    records: Records, chosen: Sequence[Lane], end_ns: int, stalls: Sequence[Stall], violated: Answers
) -> dict[str, list[dict[str, Any]]]:
    near = [*_moments(records, stalls), *_first_recoveries(records)]
    first, others = (Window(0, end_ns, COLUMNS // count) for count in (1, max(len(chosen) - 1, 1)))
    answers: dict[str, list[dict[str, Any]]] = {}
    for name in figures(records):
        spec = curves()[name].spec
        views: list[tuple[Sequence[Lane], Window]]
        views = [([lane], others if n else first) for n, lane in enumerate(chosen)]
        if spec.each == "flow":
            views = [(chosen[:1], first)]
        elif spec.shape == "packets":
            views += [
                ([lane], Window(low, high, 150, alone=True))
                for lane, (low, high) in near
                if lane in chosen and low < high
            ]
        elif len(chosen) > 1:
            views.append((chosen, others))  # all in one figure
        answers[name] = [
            {"lanes": [] if spec.each == "flow" else [lane_text(lane) for lane in of], "from": window.from_ns,
             "to": window.to_ns, "bin": bin_ns, "answer": _answer(records, name, of, window, stalls, violated, bin_ns)}
            for of, window in views
            for bin_ns in (0, *(ns for ns in BINS_NS if spec.shape == "rate" and 10 * ns <= end_ns <= COLUMNS * ns))
        ]  # fmt: skip
    return answers


def _answer(
    records: Records,
    name: str,
    of: Sequence[Lane],
    window: Window,
    stalls: Sequence[Stall],
    violated: Answers,
    bin_ns: int,
) -> Mapping[str, Any]:
    """As serve gives it, but of a whole point as precise as it can be seen."""
    answer = chart_of(records, name, of, window, stalls, violated, bin_ns).to_json()
    exact = window.alone or curves()[name].spec.shape == "rate"
    return answer if exact else {**answer, "data": rounded(answer["data"], answer["kind"], window)}


def _moments(records: Records, stalls: Sequence[Stall]) -> list[Near]:
    """Where the longest stalls begin and end, with EACH_SIDE packets of data at each side."""
    found = []
    for stall in sorted(stalls, key=lambda stall: -stall.length_ns)[:PROVEN]:
        lane = (stall.flow, stall.conn)
        lines = lines_of(records, "seq", lane)
        time_ns = lines[0].time_ns if lines else np.empty(0, np.int64)  # no data where no handshake ended
        for moment in (stall.start_ns, stall.end_ns):
            at = int(np.searchsorted(time_ns, moment))
            near = time_ns[max(at - EACH_SIDE, 0) : at + EACH_SIDE]
            if len(near):
                found.append((lane, (int(near[0]), int(near[-1]) + 1)))
    return found


def _first_recoveries(records: Records) -> list[Near]:
    windows: dict[Lane, list[Near]] = {}
    for recovery, span in recoveries(records):
        windows.setdefault((recovery.flow, recovery.conn), []).append(((recovery.flow, recovery.conn), span))
    return [near for of_lane in windows.values() for near in of_lane[:MAX_VIEWS]]
