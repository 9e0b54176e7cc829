# SPDX-License-Identifier: Apache-2.0
"""What each figure of a point shows in a window of time, at most a few thousand values of it.

Every figure is {"lines": [{"name", "t", "y", "rows", …}], "bucket_ns", "left_out", …}: t in ns after the window's
`from`, y in the base unit (bit/s, bytes, ns, packets), rows how many samples the line stands for; bucket_ns is 0 where
each sample is there.  A line of bins has t0 and dt in place of t.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testctl.curves.core.registry import curves
from testctl.curves.core.spec import CurveSpec, Line
from testctl.curves.core.thin import m4
from testctl.curves.core.window import LONGEST_NS, Window, round_width
from testctl.metrics.core.bins import occupied_bins
from testctl.metrics.core.memo import forget, once
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import Array, Ints, numbers_of

EXACT = 3000
"""Samples that are given one by one instead of being thinned."""

MAX_LINES = 8
"""Flows or ports in one figure; more can't be told apart."""

OUTLYING = 100
"""A value of so many medians makes the others invisible on a linear axis."""

MAX_BINS = 1_000_000
"""Bins of a rate whose width is asked for."""

_FINE = 10
"""Bins that make one bin of a rate: what its band is the least and the greatest of."""

Lane = tuple[str, int]
"""A connection: its flow and its number there."""


@once
def flows_drawn(records: Records) -> tuple[str, ...]:
    """The flows that have packets, those with most bytes first."""
    codes, names = records.codes("flow")
    sums = dict(zip(names, np.bincount(codes, records.column("wire_bytes"), len(names)), strict=True))
    return tuple(sorted((flow for flow in records.flows if sums.get(flow)), key=lambda flow: -sums[flow]))


@once
def lanes(records: Records) -> tuple[Lane, ...]:
    """The connections of these flows, those with most payload first."""
    codes, names = records.codes("flow")
    key = codes.astype(np.int64) << 16 | records.column("conn").astype(np.int64)
    sums = np.bincount(key, records.column("length")) if len(key) else np.empty(0)
    there = np.flatnonzero(np.bincount(key)).tolist()
    found = {(names[lane >> 16], lane & 0xFFFF): sums[lane] for lane in there}
    return tuple(sorted((one for one in found if one[0] in records.flows), key=lambda one: (-found[one], one)))


@once
def figures(records: Records) -> tuple[str, ...]:
    """The curves that the records can draw."""
    seen = [view(records, flow) for flow in flows_drawn(records)]
    return tuple(name for name, one in curves().items() if one.spec.title and any(map(one.spec.there, seen)))


def lines_of(records: Records, name: str, lane: Lane | None) -> list[Line]:
    """Every sample of a figure: of all flows, or of a connection where the curve is of `each` one."""
    whole = (-LONGEST_NS, LONGEST_NS)
    return [line.cut(slice(None)) for line in _lines(records, name, lane)] + _beside(records, name, lane, *whole)


@once
def _lines(records: Records, name: str, lane: Lane | None) -> list[Line]:
    """The lines of a figure without those beside them; of a large point nothing else is kept."""
    found = _made(records, name, lane)
    if records.in_parts:
        forget(records, (flows_drawn, lanes, figures, _lines, _last_ns))
    return found


def _beside(records: Records, name: str, lane: Lane | None, low_ns: int, high_ns: int) -> list[Line]:
    beside = curves()[name].beside
    return beside(view(records, lane[0]), lane[1], low_ns, high_ns) if beside is not None and lane is not None else []


def _made(records: Records, name: str, lane: Lane | None) -> list[Line]:
    curve = curves()[name]
    if curve.lines is not None:
        flow, conn = lane or (flows_drawn(records)[0], 0)
        return curve.lines(view(records, flow), conn)
    if lane is None:
        there = [flow for flow in flows_drawn(records) if curve.spec.there(view(records, flow))]
        return [_line(flow, records, flow, curve.spec) for flow in there]
    return [_line("{}/{}".format(*lane), records, lane[0], curve.spec, lane[1])]


def _line(name: str, records: Records, flow: str, spec: CurveSpec, conn: int | None = None) -> Line:
    table = curves()[spec.name].compute(view(records, flow))
    time_ns, value = numbers_of(table, "time_ns"), numbers_of(table, spec.value)
    if conn is not None:
        mine = numbers_of(table, "conn") == conn
        time_ns, value = time_ns[mine], value[mine]
    if (np.diff(time_ns) < 0).any():
        order = np.argsort(time_ns, kind="stable")
        time_ns, value = time_ns[order], value[order]
    return Line(name, time_ns, value)


def figure(records: Records, name: str, lane: Lane, window: Window, bin_ns: int = 0) -> dict[str, Any]:
    """A curve of a point in a window.  bin_ns: the width of a rate's bins, by default as the window wants it."""
    spec = curves()[name].spec
    of = lane if spec.each == "connection" else None
    lines = _lines(records, name, of)
    shown, left_out = lines if spec.shape == "packets" else lines[:MAX_LINES], max(len(lines) - MAX_LINES, 0)
    if spec.shape == "rate":
        return _rates(shown, window, bin_ns, _last_ns(records)) | {"left_out": left_out}
    parts = [_part(line, window, spec.shape != "packets") for line in shown]
    each = sum(part.stop - part.start for part in parts) <= EXACT
    cuts = [line.cut(part) if each else line.plain(part) for line, part in zip(shown, parts, strict=True)]
    if each:
        cuts += [line.cut(slice(*_ends(line, window))) for line in _beside(records, name, of, window.low, window.high)]
    found = {
        "lines": [_thinned(cut, window, each) for cut in cuts if len(cut)],
        "bucket_ns": 0 if each else window.bucket,
        "left_out": 0 if spec.shape == "packets" else left_out,
    }
    return found | ({"log": far_apart([line.value for line in shown])} if spec.log else {})


def far_apart(values: Sequence[Array]) -> bool:
    """Whether only a logarithmic axis shows all: the largest is over OUTLYING medians, and none is 0 or less."""
    every = np.concatenate([*values, np.zeros(0, np.int64)])
    return bool(len(every)) and bool(every.min() > 0) and float(every.max()) > OUTLYING * float(np.median(every))


def rate_bins(line: Line, width_ns: int, start_ns: int, count: int) -> Array:
    """Rate in bit/s of `count` bins [start + i * width, …) of a line of bytes."""
    low, high = np.searchsorted(line.time_ns, [start_ns, start_ns + count * width_ns])
    number, sums = occupied_bins(line.time_ns[low:high], line.value[low:high], start_ns, width_ns)
    rate = np.zeros(count)
    rate[number] = sums * (8e9 / width_ns)
    return rate


@once
def _last_ns(records: Records) -> int:
    time_ns = records.column("time_ns")
    return int(time_ns.max()) if len(time_ns) else 0


def _part(line: Line, window: Window, held: bool) -> slice:
    """The samples that are fetched, and those before and behind: what was last known in a silence.

    held: it is a value that holds; of what does not, packets, the neighbours are fetched for an empty window alone.
    """
    first, last = _ends(line, window)
    more = int(held or first == last)
    return slice(max(first - more, 0), min(last + more, len(line)))


def _ends(line: Line, window: Window) -> tuple[int, int]:
    first, last = np.searchsorted(line.time_ns, [window.low, window.high])
    return int(first), int(last)


def _thinned(line: Line, window: Window, each: bool) -> dict[str, Any]:
    kept = slice(None) if each else m4(line.time_ns, line.value, window.low, window.bucket)
    found = {"name": line.name, "t": (line.time_ns[kept] - window.from_ns).tolist(), "y": _numbers(line.value[kept])}
    if each:
        found |= {name: values.tolist() for name, values in line.detail.items()}
    return found | {"rows": len(line)} | ({"beside": True} if line.beside else {})


def _rates(lines: Sequence[Line], window: Window, bin_ns: int, last_ns: int) -> dict[str, Any]:
    """Rate of each flow; where a bin is wide enough also its least and greatest tenth."""
    width = max(bin_ns, round_width(window.span // MAX_BINS)) if bin_ns else max(round_width(window.bucket * 2), 1000)
    fine = width // _FINE if width >= 100_000 and not bin_ns else width
    base = max(window.low // width * width, 0)
    bins = max(-(-(min(window.high, last_ns + 1) - base) // width), 0)
    made = [_rate(line, window, (base, bins, width, fine)) for line in lines]
    return {"lines": made, "bucket_ns": width, "fine_ns": fine}


def _rate(line: Line, window: Window, grid: tuple[int, int, int, int]) -> dict[str, Any]:
    base, bins, width, fine = grid
    parts = rate_bins(line, fine, base, bins * (width // fine)).reshape(bins, width // fine)
    mean = parts.mean(axis=1) if bins else np.zeros(0)
    found: dict[str, Any] = {"name": line.name, "rows": int(np.diff(_inside(line, base, bins * width))[0])}
    if fine == width and bins > EXACT:
        start = base + width * np.arange(bins)
        kept = m4(start, mean, base, -(-bins * width // max(EXACT // 4, window.buckets)))
        return found | {"t": (start[kept] - window.from_ns).tolist(), "y": _numbers(mean[kept])}
    found |= {"t0": base - window.from_ns, "dt": width, "y": _numbers(mean)}
    if fine < width:
        found |= {"least": _numbers(parts.min(axis=1)), "most": _numbers(parts.max(axis=1))}
    return found


def _inside(line: Line, start_ns: int, length_ns: int) -> Ints:
    return np.searchsorted(line.time_ns, [start_ns, start_ns + length_ns])


def _numbers(values: Array) -> list[int]:
    rounded: list[int] = np.round(values).astype(np.int64).tolist()
    return rounded
