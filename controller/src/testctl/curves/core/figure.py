# SPDX-License-Identifier: Apache-2.0
"""The data of each figure of a point in a window of time, at most a few thousand values.

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
from testctl.metrics.core.bins import whole_bins
from testctl.metrics.core.memo import forget, once
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import Array, numbers_of

EXACT = 3000
"""Greatest number of samples that are not thinned."""

MAX_LINES = 8
"""Greatest number of lines in a figure; the colours of more can't be distinguished."""

OUTLYING = 100
"""Multiple of the median at which a value makes the others invisible on a linear axis."""

MAX_BINS = 1_000_000
"""Greatest number of bins of a requested width."""

_FINE = 10
"""Fine bins in one bin of a rate; the band shows the least and the greatest of them."""

Lane = tuple[str, int]
"""A connection: its flow and its number there."""


@once
def flows_drawn(records: Records) -> tuple[str, ...]:
    """The flows with packets, in the plan's order: of many those with most bytes come first."""
    codes, names = records.codes("flow")
    sums = dict(zip(names, np.bincount(codes, records.column("wire_bytes"), len(names)), strict=True))
    there = [flow for flow in records.flows if sums.get(flow)]
    return tuple(there if len(there) <= MAX_LINES else sorted(there, key=lambda flow: -sums[flow]))


@once
def lanes(records: Records) -> tuple[Lane, ...]:
    """The connections of these flows, in the plan's order: of many those with most payload come first."""
    codes, names = records.codes("flow")
    key = codes.astype(np.int64) << 16 | records.column("conn").astype(np.int64)
    sums = np.bincount(key, records.column("length")) if len(key) else np.empty(0)
    there = np.flatnonzero(np.bincount(key)).tolist()
    bytes_of = {(names[lane >> 16], lane & 0xFFFF): sums[lane] for lane in there}
    order = {flow: number for number, flow in enumerate(records.flows)}
    present = sorted((key for key in bytes_of if key[0] in order), key=lambda key: (order[key[0]], key[1]))
    return tuple(present if len(present) <= MAX_LINES else sorted(present, key=lambda key: -bytes_of[key]))


@once
def figures(records: Records) -> tuple[str, ...]:
    """The curves that the records can draw."""
    seen = [view(records, flow) for flow in flows_drawn(records)]
    return tuple(name for name, curve in curves().items() if curve.spec.title and any(map(curve.spec.there, seen)))


def lines_of(records: Records, name: str, lane: Lane | None) -> list[Line]:
    """All samples of a figure: of all flows, or of one connection if the curve has a figure for each."""
    whole = (-LONGEST_NS, LONGEST_NS)
    return [line.cut(slice(None)) for line in _lines(records, name, lane)] + _beside(records, name, lane, *whole)


@once
def _lines(records: Records, name: str, lane: Lane | None) -> list[Line]:
    """The lines of a figure without accompanying ones, cached; of a large point only the last figure."""
    curve = curves()[name]
    if curve.lines is not None:
        flow, conn = lane or (flows_drawn(records)[0], 0)
        lines = curve.lines(view(records, flow), conn)
    elif lane is not None:
        lines = [_line("{}/{}".format(*lane), records, lane[0], curve.spec, lane[1])]
    else:
        there = [flow for flow in flows_drawn(records) if curve.spec.there(view(records, flow))]
        lines = [_line(flow, records, flow, curve.spec) for flow in there]
    if records.in_parts:
        forget(records, (flows_drawn, lanes, figures, _lines, _last_ns))
    return lines


def lines_of_connections(records: Records, flow: str) -> list[Line]:
    """The throughput of each connection of a flow: the bytes on the wire of each packet at the receiver."""
    rows = view(records, flow).at_sink
    connections = {int(conn): rows.of_conn(int(conn)) for conn in np.unique(rows["conn"])}
    return [Line(f"{flow}/{conn}", packets["time_ns"], packets["wire_bytes"]) for conn, packets in connections.items()]


def _beside(records: Records, name: str, lane: Lane | None, low_ns: int, high_ns: int) -> list[Line]:
    beside = curves()[name].beside
    return beside(view(records, lane[0]), lane[1], low_ns, high_ns) if beside is not None and lane is not None else []


def _line(name: str, records: Records, flow: str, spec: CurveSpec, conn: int | None = None) -> Line:
    table = curves()[spec.name].compute(view(records, flow))
    time_ns, value = numbers_of(table, "time_ns"), numbers_of(table, spec.value)
    if conn is not None:
        own = numbers_of(table, "conn") == conn
        time_ns, value = time_ns[own], value[own]
    if (np.diff(time_ns) < 0).any():
        order = np.argsort(time_ns, kind="stable")
        time_ns, value = time_ns[order], value[order]
    return Line(name, time_ns, value)


def figure(
    records: Records, name: str, lane: Lane, window: Window, bin_ns: int = 0, *, singly: bool = False
) -> dict[str, Any]:
    """A curve of a point in a window.

    bin_ns  the width of a rate's bins; 0: chosen for the window
    singly  of a rate, a line for every connection where a flow has several, and there are at most MAX_LINES
    """
    spec = curves()[name].spec
    of = lane if spec.each == "connection" else None
    lines = _lines(records, name, of)
    if singly and spec.shape == "rate" and len(flows_drawn(records)) < len(lanes(records)) <= MAX_LINES:
        lines = [line for flow in flows_drawn(records) for line in lines_of_connections(records, flow)]
    shown, left_out = lines if spec.shape == "packets" else lines[:MAX_LINES], max(len(lines) - MAX_LINES, 0)
    if spec.shape == "rate":
        # The rate of each flow; of wide bins also the least and greatest rate in a tenth of the bin.
        least = round_width(window.span // MAX_BINS if bin_ns else window.bucket * 2)
        width = max(bin_ns or 1000, least)
        fine = width // _FINE if width >= 100_000 and not bin_ns else width
        base = max(window.low // width * width, 0)
        bins = max(-(-(min(window.high, _last_ns(records) + 1) - base) // width), 0)
        made = [_rate(line, window, (base, bins, width, fine)) for line in shown]
        return {"lines": made, "bucket_ns": width, "fine_ns": fine} | {"left_out": left_out}
    parts = [_part(line, window, spec.shape != "packets") for line in shown]
    each = sum(part.stop - part.start for part in parts) <= EXACT
    cuts = [line.cut(part) if each else line.plain(part) for line, part in zip(shown, parts, strict=True)]
    if each:
        cuts += [line.cut(slice(*_ends(line, window))) for line in _beside(records, name, of, window.low, window.high)]
    answer = {
        "lines": [_thinned(cut, window, each) for cut in cuts if len(cut)],
        "bucket_ns": 0 if each else window.bucket,
        "left_out": 0 if spec.shape == "packets" else left_out,
    }
    return answer | ({"log": far_apart([line.value for line in shown])} if spec.log else {})


def far_apart(values: Sequence[Array]) -> bool:
    """Whether the axis has to be logarithmic: the largest is over OUTLYING medians, and all are positive."""
    every = np.concatenate([*values, np.zeros(0, np.int64)])
    return bool(len(every)) and bool(every.min() > 0) and float(every.max()) > OUTLYING * float(np.median(every))


def rate_bins(line: Line, width_ns: int, start_ns: int, count: int) -> Array:
    """Rate in bit/s of `count` bins [start + i * width, …) of a line of bytes."""
    _, number, sums = whole_bins(line.time_ns, line.value, start_ns, start_ns + count * width_ns, width_ns)
    rate = np.zeros(count)
    rate[number] = sums * (8e9 / width_ns)
    return rate


@once
def _last_ns(records: Records) -> int:
    time_ns = records.column("time_ns")
    return int(time_ns.max()) if len(time_ns) else 0


def _part(line: Line, window: Window, held: bool) -> slice:
    """The samples of a window, and their neighbours on both sides.

    held: values hold until the next sample; of others, packets, neighbours are included only for an empty window.
    """
    first, last = _ends(line, window)
    more = int(held or first == last)
    return slice(max(first - more, 0), min(last + more, len(line)))


def _ends(line: Line, window: Window) -> tuple[int, int]:
    first, last = np.searchsorted(line.time_ns, [window.low, window.high])
    return int(first), int(last)


def _thinned(line: Line, window: Window, each: bool) -> dict[str, Any]:
    kept = slice(None) if each else m4(line.time_ns, line.value, window.low, window.bucket)
    drawn = {"name": line.name, "t": (line.time_ns[kept] - window.from_ns).tolist(), "y": _numbers(line.value[kept])}
    if each:
        drawn |= {name: values.tolist() for name, values in line.detail.items()}
    return drawn | {"rows": len(line)} | ({"beside": True} if line.beside else {})


def _rate(line: Line, window: Window, grid: tuple[int, int, int, int]) -> dict[str, Any]:
    base, bins, width, fine = grid
    parts = rate_bins(line, fine, base, bins * (width // fine)).reshape(bins, width // fine)
    mean = parts.mean(axis=1) if bins else np.zeros(0)
    drawn: dict[str, Any] = {
        "name": line.name,
        "rows": int(np.diff(np.searchsorted(line.time_ns, [base, base + (bins * width)]))[0]),
    }
    if fine == width and bins > EXACT:
        start = base + width * np.arange(bins)
        kept = m4(start, mean, base, -(-bins * width // max(EXACT // 4, window.buckets)))
        return drawn | {"t": (start[kept] - window.from_ns).tolist(), "y": _numbers(mean[kept])}
    drawn |= {"t0": base - window.from_ns, "dt": width, "y": _numbers(mean)}
    if fine < width:
        drawn |= {"least": _numbers(parts.min(axis=1)), "most": _numbers(parts.max(axis=1))}
    return drawn


def _numbers(values: Array) -> list[int]:
    rounded: list[int] = np.round(values).astype(np.int64).tolist()
    return rounded
