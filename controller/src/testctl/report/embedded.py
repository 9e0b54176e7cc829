# SPDX-License-Identifier: Apache-2.0
"""A point's data inside report.html: what serve's scripts would ask a server for, and the lists beside the figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from testctl.core.units import show_time, time_unit
from testctl.curves import Lane, Window, curves, figure, figures, flows_drawn, lanes, lines_of, shown_ns
from testctl.metrics.recovery import flow_recoveries
from testctl.metrics.recovery.measure import Recovery
from testctl.records import Records
from testctl.report.fates import Fates, read_fates
from testctl.report.packed import drawn
from testctl.report.stalls import Stall, read_stalls
from testctl.results import RunPoint

BINS_NS = (100_000_000, 10_000_000, 1_000_000, 100_000)
"""Bin widths of the throughput figure: 100 ms, 10 ms, 1 ms, 100 µs."""

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

MAX_LISTED = 100

QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(0.01, 1e-5, 50), [1.0]]))

_MIN_PAD_NS = 1_000_000
_LONGEST_TEXT = 400


def embedded(point: RunPoint) -> dict[str, Any] | None:
    """The data of a point's figures and lists; None if it has no packets' records."""
    records = point.records()
    if records is None or not records.packets.num_rows:
        return None
    end_ns = shown_ns(point.point, int(records.column("time_ns").max()))
    chosen, stalls = lanes(records)[:MAX_LANES], read_stalls(point.stalls(), records.packets)
    recoveries = sorted(
        (one for flow in records.flows for one in flow_recoveries(records, flow)), key=lambda one: one.entry_ns
    )
    spans = [((one.flow, one.conn), _span(records, one)) for one in recoveries]
    fates = read_fates(point, records)
    return {
        "duration_ns": end_ns,
        "lanes": [_text(lane) for lane in chosen],
        "left_out": max(len(lanes(records)) - MAX_LANES, 0),
        "figures": _figures(records, chosen, end_ns, [*_moments(records, stalls), *_first(spans)]),
        "bins": _bins(end_ns),
        "stalls": {"rows": [stall.to_json() for stall in stalls], "in_all": len(stalls)},
        "recoveries": {
            "rows": [_row(one, span) for one, (_, span) in list(zip(recoveries, spans, strict=True))[:MAX_LISTED]],
            "in_all": len(recoveries),
        },
        "fates": _fates(fates) if fates else None,
        "distribution": distribution(records),
    }


def _figures(
    records: Records, chosen: Sequence[Lane], end_ns: int, near: Sequence[tuple[Lane, tuple[int, int]]]
) -> dict[str, list[dict[str, Any]]]:
    """{name: [{"lane", "bin", "from", "to", "data"}]}: the whole point, and windows in which each packet is.

    data: as drawn() of packed.py has it.
    """
    first, others = (Window(0, end_ns, COLUMNS // count) for count in (1, max(len(chosen) - 1, 1)))
    found: dict[str, list[dict[str, Any]]] = {}
    for name in figures(records):
        spec = curves()[name].spec
        asked = [(lane, width, others if n else first)
                 for n, lane in enumerate(chosen if spec.each == "connection" else chosen[:1])
                 for width in (_bins(end_ns) if spec.shape == "rate" else (0,))]  # fmt: skip
        if spec.shape == "packets":
            asked += [
                (lane, 0, Window(low, high, 150, alone=True))
                for lane, (low, high) in near
                if lane in chosen and low < high
            ]
        found[name] = [
            {"lane": _text(lane) if spec.each == "connection" else "", "bin": width, "from": window.from_ns,
             "to": window.to_ns, "data": drawn(figure(records, name, lane, window, width), spec.kind,
                                               window.span if window in (first, others) else 0)}
            for lane, width, window in asked
        ]  # fmt: skip
    return found


def _bins(end_ns: int) -> list[int]:
    """Bin widths that can be chosen: two bins at least, and none finer than the first that has COLUMNS bins."""
    fine = next((width for width in BINS_NS if width * COLUMNS <= end_ns), BINS_NS[-1])
    return [width for width in BINS_NS if width == fine or (width > fine and width * 2 <= end_ns)]


def _moments(records: Records, stalls: Sequence[Stall]) -> list[tuple[Lane, tuple[int, int]]]:
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


def _first(spans: Sequence[tuple[Lane, tuple[int, int]]]) -> list[tuple[Lane, tuple[int, int]]]:
    """The first MAX_VIEWS recoveries of each connection."""
    return [one for n, one in enumerate(spans) if sum(lane == one[0] for lane, _ in spans[:n]) < MAX_VIEWS]


def _span(records: Records, one: Recovery) -> tuple[int, int]:
    """A recovery with as much again before and after it: at least the round trip of what was lost."""
    times = lines_of(records, "seq", (one.flow, one.conn))
    end = one.exit_ns if one.exit_ns >= 0 else max((int(line.time_ns[-1]) for line in times), default=one.entry_ns)
    pad = max(end - one.entry_ns, _MIN_PAD_NS)
    return max(one.first_dup_ns - pad, 0), end + pad


_ENTERED_BY = {"dupacks": "duplicate ACKs", "early": "fewer than 3 duplicate ACKs", "path_mtu": "ICMP: too large"}


def _row(one: Recovery, span: tuple[int, int]) -> dict[str, Any]:
    """A recovery of the list; cells are the columns of recoveryList in report.js."""
    excess, known = one.excess_window, one.measured
    cells = [
        f"{one.entry_ns / 1e9:.6f}",
        f"{one.flow} #{one.conn}" if one.conn else one.flow,
        {"dupacks": "duplicate ACKs", "early": "fewer than 3 duplicate ACKs", "path_mtu": "ICMP"}.get(
            one.entered_by, one.entered_by
        ),
        {"ack": "ACK", "end": "–"}.get(one.exited_by, one.exited_by),
        show_time(one.length_ns) if one.length_ns >= 0 else "–",
        -(-one.flight_bytes // one.mss) if known else "–",
        (one.sent if len(one.sent) <= _LONGEST_TEXT else one.sent[: _LONGEST_TEXT - 1] + "…") if known else "–",
        one.burst_max if known else "–",
        show_time(one.silence_ns) if known else "–",
        one.resent if known else "–",
        "–" if excess is None else f"{excess} ({one.window_source})",
        one.limit,
    ]
    return {
        "lane": _text((one.flow, one.conn)),
        "fast": one.fast,
        "entry_ns": one.entry_ns,
        "exit_ns": one.exit_ns if one.exit_ns >= 0 else span[1],
        "from": span[0],
        "to": span[1],
        "cells": cells,
    }


def distribution(records: Records) -> dict[str, Any] | None:
    """Cumulative distribution of one-way latency of each flow: quantiles, dense in the tail."""
    full = [line for line in lines_of(records, "latency", None) if len(line)] if flows_drawn(records) else []
    if not full:
        return None
    unit = time_unit(max(float(np.quantile(line.value, 0.99)) for line in full))
    return {
        "unit": unit.name,
        "y": np.round(QUANTILES, 6).tolist(),
        "lines": [
            {"name": line.name, "x": np.round(np.quantile(line.value, QUANTILES) / unit.size, 3).tolist()}
            for line in full
        ],
    }


def _fates(found: Fates) -> dict[str, Any]:
    """What was asked of the switches and what happened: rules, how many of each, and the packets listed."""
    names = ("switch", "rule", "conn", "asked", "happened", "which")
    return {
        "asked": [
            [*(one[name] for name in names), one["fault"] or one["note"], int(bool(one["fault"]))]
            for one in found.asked
        ],
        "counts": [list(count) for count in found.counts],
        "packets": [
            [f"{p.time_ns / 1e9:.9f}", p.port, p.flow, p.packet, p.what, p.queue_bytes if p.queue_bytes >= 0 else ""]
            for p in found.packets
        ],
        "left_out": found.left_out,
    }


def as_script(data: Any) -> str:
    """Compact JSON that can stand inside a script element: nothing in it ends or opens one."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for bad in "<>&\u2028\u2029":
        text = text.replace(bad, f"\\u{ord(bad):04x}")
    return text


def _text(lane: Lane) -> str:
    return f"{lane[0]}/{lane[1]}"
