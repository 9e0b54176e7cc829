# SPDX-License-Identifier: Apache-2.0
"""A point's figures as compact data for the page: thinned, rounded, in the units of the axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from testctl.report.fates import Fates
from testctl.report.recovery_payload import recovery_payload
from testctl.report.series import FlowRate, Lane, Series
from testctl.report.stalls import PROVEN, cause_in_words
from testctl.report.style import Unit, byte_unit, far_apart, rate_unit, show_time, time_unit
from testctl.report.thin import envelope, near

BINS_NS = (100_000_000, 10_000_000, 1_000_000, 100_000)
"""Bin widths of the throughput figure: 100 ms, 10 ms, 1 ms, 100 µs."""

MAX = 3000
"""Points of one line of one figure, shared by the lines of that figure."""

QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 100), 1 - np.geomspace(0.01, 1e-5, 50), [1.0]]))


def payload(series: Series) -> dict[str, Any]:
    """The data of a point's figures, as report.js reads it."""
    most = MAX // max(len(series.lanes), 1) + 200
    return {
        "duration": round(series.duration_ns / 1e9, 6),
        "throughput": throughput(series.rates, series.duration_ns),
        "lanes": [lane.name for lane in series.lanes],
        "left_out": series.lanes_left_out,
        "sequence": [sequence(lane, series, most) for lane in series.lanes],
        "cwnd": [_line(lane.name, lane.info_ns, lane.cwnd, most) for lane in series.lanes if len(lane.cwnd)],
        "rtt": round_trips(series.lanes, most),
        "queue": _scaled([(name, t, y) for name, (t, y) in series.queue.items()], byte_unit, most),
        "latency": latency(series.rates),
        "stalls": stalls(series),
        "fates": fates(series.fates) if series.fates else None,
        "recovery": recovery_payload(series.time_sequences),
    }


def round_trips(lanes: Sequence[Lane], most: int) -> dict[str, Any] | None:
    """Round-trip times of each connection in one unit, and whether only a logarithmic axis shows them all."""
    full = [lane for lane in lanes if len(lane.rtt_ns)]
    if not full:
        return None
    unit = time_unit(max(float(lane.rtt_ns.max()) for lane in full))
    log = far_apart([lane.rtt_ns for lane in full])
    drawn = [_line(lane.name, lane.rtt_at_ns, lane.rtt_ns / unit.size, most, 5 if log else 3) for lane in full]
    return {"unit": unit.name, "log": log, "lines": drawn}


def throughput(rates: Sequence[FlowRate], duration_ns: int) -> dict[str, Any]:
    """Rate over time of each flow at each bin width, all in one unit."""
    wide = [rate.bins(BINS_NS[1], duration_ns) for rate in rates]
    unit = rate_unit(max((float(y.max(initial=0)) for y in wide), default=0))
    bins = []
    for width in (w for w in BINS_NS if w * 2 <= duration_ns or w == BINS_NS[-1]):
        lines = [_bins(rate, width, duration_ns, unit, MAX // max(len(rates), 1)) for rate in rates]
        bins.append({"label": show_time(width), "lines": lines})
    return {"unit": unit.name, "bins": bins}


def _bins(rate: FlowRate, width: int, duration_ns: int, unit: Unit, most: int) -> dict[str, Any]:
    y = rate.bins(width, duration_ns)[: -(-duration_ns // width)] / unit.size
    line: dict[str, Any] = {"name": rate.flow}
    if len(y) <= most:
        return {**line, "x0": 0, "dx": width / 1e9, "y": _rounded(y, 4)}
    x = np.arange(len(y)) * (width / 1e9)
    kept = envelope(x, y, most)
    return {**line, "x": _rounded(x[kept], 6), "y": _rounded(y[kept], 4)}


def sequence(lane: Lane, series: Series, most: int) -> dict[str, Any]:
    """Sequence number over time of one connection; every packet near its longest stalls is kept."""
    mine = [stall for stall in series.stalls if (stall.flow, stall.conn) == (lane.flow, lane.conn)]
    longest = sorted(mine, key=lambda stall: -stall.length_ns)[:PROVEN]
    moments = [moment for stall in longest for moment in (stall.start_ns, stall.end_ns)]

    def line(t: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> dict[str, Any]:
        kept = np.union1d(envelope(t, y, most), near(t, moments, 40))
        return {"x": _rounded(t[kept] / 1e9, 6), "y": y[kept].tolist()}

    return {
        "name": lane.name,
        "data": line(lane.data_ns, lane.data_seq),
        "ack": line(lane.ack_ns, lane.ack),
        "retrans": line(lane.retrans_ns, lane.retrans_seq),
        "fates": [{"what": what, "count": len(t), **line(t, y)} for what, (t, y) in lane.fates.items()],
        "stalls": [
            {"from": round(stall.start_ns / 1e9, 6), "to": round(stall.end_ns / 1e9, 6), "text": stall.title}
            for stall in sorted(longest, key=lambda stall: stall.start_ns)
        ],
    }


def latency(rates: Sequence[FlowRate]) -> dict[str, Any] | None:
    """Cumulative distribution of one-way latency: quantiles, dense in the tail."""
    full = [rate for rate in rates if len(rate.latency_ns)]
    if not full:
        return None
    unit = time_unit(max(float(np.quantile(rate.latency_ns, 0.99)) for rate in full))
    lines = [
        {"name": rate.flow, "x": _rounded(np.quantile(rate.latency_ns, QUANTILES) / unit.size, 3)} for rate in full
    ]
    return {"unit": unit.name, "y": _rounded(QUANTILES, 6), "lines": lines}


def stalls(series: Series) -> list[dict[str, Any]]:
    """The stalls as a list; the longest ones with the packets that prove them."""
    return [
        {
            "flow": stall.flow if not stall.conn else f"{stall.flow} #{stall.conn}",
            "from": f"{stall.start_ns / 1e9:.6f}",
            "length": show_time(stall.length_ns),
            "cause": stall.label,
            "why": cause_in_words(stall.cause),
            "ended": stall.ended,
            "words": stall.words if stall.proof else "",
            "proof": [
                [f"{item.time_ns / 1e9:.9f}", item.where, item.text, int(item.after), int(item.key)]
                for item in stall.proof
            ],
        }
        for stall in series.stalls
    ]


def fates(found: Fates) -> dict[str, Any]:
    """What was asked of the switches and what happened: rules, how many of each, and the packets listed."""
    return {
        "asked": [
            [
                one["switch"],
                one["rule"],
                one["conn"],
                one["asked"],
                one["happened"],
                one["which"],
                one["fault"] or one["note"],
                int(bool(one["fault"])),
            ]
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
    for bad, good in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(bad, good)
    return text


def _line(name: str, t: npt.NDArray[np.int64], y: npt.NDArray[Any], most: int, digits: int = 3) -> dict[str, Any]:
    kept = envelope(t, y, most)
    return {"name": name, "x": _rounded(t[kept] / 1e9, 6), "y": _rounded(y[kept], digits)}


def _scaled(lines: Sequence[tuple[str, Any, Any]], pick: Any, most: int) -> dict[str, Any] | None:
    full = [line for line in lines if len(line[1])]
    if not full:
        return None
    unit: Unit = pick(max(float(np.quantile(y, 0.99)) for _, _, y in full))
    return {"unit": unit.name, "lines": [_line(name, t, y / unit.size, most) for name, t, y in full]}


def _rounded(values: npt.NDArray[Any], digits: int) -> list[float | int]:
    """Numbers without needless digits: whole ones as integers."""
    rounded = np.round(values.astype(np.float64), digits).tolist()
    return [int(value) if value == int(value) else value for value in rounded]
