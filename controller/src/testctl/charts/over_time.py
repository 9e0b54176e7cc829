# SPDX-License-Identifier: Apache-2.0
"""Figures over time: lines of flows and connections, the time-sequence figure; stalls and recoveries are shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testctl.charts.chart import Chart, unit_of
from testctl.charts.panel import DASHES, DOTTED, Look, Panel, times
from testctl.charts.style import LANES, OTHERS, RECOVERY, STALL
from testctl.charts.time_sequence import FEW, draw_packets
from testctl.core.units import show_time
from testctl.curves import Lane, curves, figure
from testctl.curves import Window as Shown
from testctl.records import Records

MOST_SINGLY = 8
"""Connections that have a line each in a figure of flows."""

GAP = 25
"""Packets that are further apart than this part of the window have a dotted line between them, which holds the last
value: what only packets tell is not known there."""

MOST_BANDS = 2
"""Lines of a rate that have a band from the least to the greatest rate: the bands of more lines hide each other."""

MARGIN = 0.06
"""Of the range of values, above and below them."""

LETTER = 6.2
"""Pixels of a letter of a stall's cause, which is written into it where it fits; the pointer names it in any case."""

MOST_SHADED = 60
"""Stalls that are shaded: the longest of a window."""

HEIGHT = {False: 200, True: 330}
"""Of a panel, in CSS pixels: of most figures, and of a large one."""

THRESHOLD = "slow-start threshold"


@dataclass(frozen=True)
class Span:
    """A time that is shaded: a stall with its cause, or a recovery; a moment, which ends when it starts, is a line."""

    start_ns: int
    end_ns: int
    label: str = ""
    colour: str = STALL


def recovery_span(entry_ns: int, exit_ns: int, fast: bool) -> Span:
    """The time of a recovery, in the colour of its kind."""
    return Span(entry_ns, exit_ns, "fast recovery" if fast else "recovery after a timeout", RECOVERY[fast])


def over_time(
    records: Records,
    name: str,
    chosen: Sequence[Lane],
    window: Shown,
    *,
    bin_ns: int = 0,
    singly: bool = False,
    spans: Sequence[Span] = (),
    flow: str = "",
) -> Chart:
    """A curve of a point in a window of time.

    chosen   connections: of a figure of connections those that are drawn, the first alone in a time-sequence figure
    bin_ns   width of a rate's bins; 0: chosen for the window
    singly   of a rate, whether every connection has a line, where there are at most MOST_SINGLY
    spans    shaded times: stalls, recoveries; and moments, in a colour of their own
    flow     of a figure of flows, the only one that is drawn
    """
    spec = curves()[name].spec
    lane_data = _figures(records, name, chosen, window, bin_ns, singly)
    if flow and spec.each == "flow":
        lane_data = [(lane, _only(data, flow)) for lane, data in lane_data]
    zeros = _zeros(records, lane_data)
    lines = [line for _, data in lane_data for line in data["lines"]]
    log = any(data.get("log") for _, data in lane_data)
    ends = _ends(lines, window)
    range_ = None if ends is None else _range(spec.kind, spec.zero, *ends, log)
    panel, others = Panel(), sorted({str(line["name"]) for line in lines})
    _shade(panel, sorted(spans, key=lambda span: span.start_ns - span.end_ns)[:MOST_SHADED], window, spec.large)
    for lane, data in lane_data:
        for line in data["lines"]:
            look = _look(records, lane, line, len(lane_data) > 1, others)
            _SHAPES[spec.shape](panel, line, look, window, data)
    left_out = sum(data.get("left_out", 0) for _, data in lane_data)
    remarks = [
        _summary(spec.shape, lane_data, lines),
        f"{left_out} more are not drawn" if left_out else "",
        f"0 throughout: {', '.join(zeros)}" if zeros else "",
    ]
    encoding = _axes(window, log) | _legend(panel, bool(zeros))
    return Chart(
        {"height": HEIGHT[spec.large], "layer": panel.layers, "encoding": encoding},
        panel.data,
        title=spec.title,
        note="; ".join(part for part in remarks if part),
        spoken=f"{spec.title}, {show_time(window.span)} from {show_time(window.from_ns)}: "
        + _spoken(panel, spec.kind, ends),
        kind=spec.kind,
        range=range_,
        more={"of": spec.of, "lines": panel.lines, "from": window.from_ns, "to": window.to_ns,
              "zero": spec.zero and bool(lines) and not any(any(line["y"]) for line in lines),
              "legend": [[label, colour, list(dash)] for label, colour, dash in panel.legend]},
    )  # fmt: skip


def _figures(
    records: Records, name: str, chosen: Sequence[Lane], window: Shown, bin_ns: int, singly: bool
) -> list[tuple[Lane | None, dict[str, Any]]]:
    """The data of the figure: of each connection, or once of all flows."""
    spec = curves()[name].spec
    if spec.each == "flow":
        first = chosen[0] if chosen else (records.flows[0], 0)
        return [(None, figure(records, name, first, window, bin_ns, singly=singly))]
    several = chosen[:1] if spec.shape == "packets" else chosen[:MOST_SINGLY]
    return [(lane, figure(records, name, lane, window, bin_ns)) for lane in several]


def _zeros(records: Records, lane_data: Sequence[tuple[Lane | None, dict[str, Any]]]) -> list[str]:
    """Takes lines away that are 0 throughout and of no flow, where another is not: ports whose queues were empty."""
    lines = [line for _, data in lane_data for line in data["lines"]]
    empty = [str(line["name"]) for line in lines if not any(line["y"]) and line["name"] not in records.flows]
    if len(empty) == len(lines) or lane_data[0][0] is not None:
        return []
    for _, data in lane_data:
        data["lines"] = [line for line in data["lines"] if line["name"] not in empty]
    return empty


def _only(data: Mapping[str, Any], flow: str) -> dict[str, Any]:
    lines = [line for line in data["lines"] if flow in (line["name"], line["name"].rpartition("/")[0])]
    return {**data, "lines": lines}


def _look(records: Records, lane: Lane | None, line: Mapping[str, Any], several: bool, others: Sequence[str]) -> Look:
    """(label, colour, dash) of a line: a flow has one colour in all figures of a run, a connection of it a dash."""
    name = str(line["name"])
    flow, _, conn = name.rpartition("/")
    if lane is not None:
        (flow, number), own = lane, f"{lane[0]}/{lane[1]}"
        label = name if not several or name == own else f"{own} {name}"
        dash = DOTTED if name == THRESHOLD else DASHES[number % len(DASHES)] if several else DASHES[0]
    elif name in records.flows:
        flow, label, dash = name, name, DASHES[0]
    elif flow in records.flows and conn.isdecimal():
        label, dash = name, DASHES[int(conn) % len(DASHES)]
    else:
        return name, OTHERS[others.index(name) % len(OTHERS)], DASHES[0]
    return label, LANES[list(records.flows).index(flow) % len(LANES)], dash


def _rate(panel: Panel, line: Mapping[str, Any], look: Look, window: Shown, data: Mapping[str, Any]) -> None:
    edges = times(line, window)
    ends = [*edges, edges[-1] + line["dt"]] if "dt" in line and edges else edges
    held = [*line["y"], line["y"][-1]] if len(ends) > len(edges) else line["y"]
    if "most" in line and edges and len(data["lines"]) <= MOST_BANDS:
        band = {"t": ends, "y": [*line["least"], line["least"][-1]], "y2": [*line["most"], line["most"][-1]]}
        panel.add({"type": "area", "interpolate": "step-after", "opacity": 0.22, "color": look[1]}, band)
    panel.name(look)
    panel.add({"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}, {"t": ends, "y": held}, look[0])


def _level(panel: Panel, line: Mapping[str, Any], look: Look, window: Shown, data: Mapping[str, Any]) -> None:
    """A value that holds until the next; the last one to the end of the window."""
    t, y = times(line, window), list(line["y"])
    if t and t[-1] < window.to_ns:
        t, y = [*t, window.to_ns], [*y, y[-1]]
    panel.name(look)
    panel.add(
        # A threshold has dots wider than the window's line, which they lie on at times.
        _pointed(
            {"type": "line", "interpolate": "step-after", "strokeWidth": 3 if look[2] == DOTTED else 1.4}, t, window
        ),
        {"t": t, "y": y},
        look[0],
    )


def _line(panel: Panel, line: Mapping[str, Any], look: Look, window: Shown, data: Mapping[str, Any]) -> None:
    t = times(line, window)
    panel.name(look)
    panel.add(_pointed({"type": "line", "strokeWidth": 1.3}, t, window), {"t": t, "y": line["y"]}, look[0])


def _packets_apart(panel: Panel, line: Mapping[str, Any], look: Look, window: Shown, data: Mapping[str, Any]) -> None:
    """A line between packets that are near each other, and a dotted one that holds the last value over a silence."""
    t, y = np.asarray(times(line, window), np.int64), np.asarray(line["y"])
    far = np.diff(t) > window.span // GAP
    cuts = np.flatnonzero(far) + 1
    gaps = np.full(len(cuts), None, object)
    panel.name(look)
    broken = {"t": np.insert(t, cuts, t[cuts - 1]).tolist(), "y": np.insert(y.astype(object), cuts, gaps).tolist()}
    panel.add(_pointed({"type": "line", "strokeWidth": 1.3}, t.tolist(), window), broken, look[0])
    ends = (
        [*t[cuts].tolist(), window.to_ns] if len(t) and window.to_ns - t[-1] > window.span // GAP else t[cuts].tolist()
    )
    starts = [*(cuts - 1).tolist(), len(t) - 1][: len(ends)]
    if ends:
        silent = {"t": t[starts].tolist(), "x2": ends, "y": y[starts].tolist()}
        panel.add({"type": "rule", "strokeDash": list(DOTTED), "opacity": 0.6, "color": look[1]}, silent)


_SHAPES = {
    "rate": _rate, "steps": _level, "line": _line, "line with gaps": _packets_apart, "packets": draw_packets,
}  # fmt: skip


def _pointed(mark: dict[str, Any], t: Sequence[int], window: Shown) -> dict[str, Any]:
    """Each value has a dot where few are in the window."""
    inside = sum(window.from_ns <= time_ns <= window.to_ns for time_ns in t)
    return {**mark, "point": {"size": 14, "filled": True}} if inside <= FEW else mark


def _shade(panel: Panel, spans: Sequence[Span], window: Shown, named: bool) -> None:
    """A layer for each colour, whose data has the words for the pointer; named: stalls have them written into them."""
    whole: dict[str, Any] = {"y": {"value": 0}, "y2": {"value": {"expr": "height"}}}
    for colour in dict.fromkeys(span.colour for span in spans):
        ends = sorted(
            (max(span.start_ns, window.from_ns), min(span.end_ns, window.to_ns), span.label)
            for span in spans
            if span.colour == colour and span.start_ns <= window.to_ns and span.end_ns >= window.from_ns
        )
        if not ends:
            continue
        low, high, label = map(list, zip(*ends, strict=True))
        if low == high:
            panel.add({"type": "rule", "strokeWidth": 1.5, "color": colour}, {"t": low, "label": label}, **whole)
            continue
        panel.add({"type": "rect", "opacity": 0.16, "color": colour}, {"t": low, "x2": high, "label": label}, **whole)
        if named and colour == STALL:
            fits = [(to - at) / window.span / (LETTER * len(text) + 8) for at, to, text in ends]
            words = {"expr": "datum.fits * width > 1 ? datum.label : ''"}
            panel.add(
                {"type": "text", "baseline": "bottom", "fontSize": 11, "text": words},
                {"t": [(at + to) // 2 for at, to, _ in ends], "label": label, "fits": fits},
                y={"value": {"expr": "height - 4"}},
            )


def _ends(lines: Sequence[Mapping[str, Any]], window: Shown) -> tuple[float, float] | None:
    """Least and greatest y in the window; of lines that cross it where nothing is inside; else None."""
    counted = [line for line in lines if not line.get("beside") and (line["name"] != THRESHOLD or len(lines) == 1)]
    inside: list[float] = []
    for line in counted:
        t = np.asarray(times(line, window))
        kept = (t >= window.from_ns) & (t <= window.to_ns)
        for name in ("y", "least", "most"):
            if name in line and kept.any():
                values = np.asarray(line[name])[kept]
                inside += [float(values.min()), float(values.max())]
        if "length" in line and kept.any():
            inside.append(float((np.asarray(line["y"]) - np.asarray(line["length"]))[kept].min()))
    inside = inside or [float(value) for line in lines for value in line["y"]]
    return (min(inside), max(inside)) if inside else None


def _range(kind: str, zero: bool, low: float, high: float, log: bool) -> tuple[float, float]:
    """The ends of the axis: with a margin."""
    if log and low > 0:
        return low / 1.2, high * 1.2
    if zero:
        return 0.0, high * (1 + MARGIN) if high > 0 else 1e6 if kind == "time" else 1.0
    margin = (high - low or abs(high) or 1) * MARGIN
    return low - margin, high + margin


def _axes(window: Shown, log: bool) -> dict[str, Any]:
    size, unit, origin = _time_axis(window)
    after = f" after {origin / 1e9:.{ {'s': 0, 'ms': 0, 'µs': 3, 'ns': 6}[unit] }f} s" if origin else ""
    x = {"field": "t", "type": "quantitative", "scale": {"domain": [window.from_ns, window.to_ns], "nice": False},
         "axis": {"title": f"time ({unit}{after})", "grid": True, "tickCount": {"expr": "ceil(width / 110)"},
                  "labelExpr": f"format((datum.value - {origin}) / {size}, '~g')"}}  # fmt: skip
    y = {"field": "y", "type": "quantitative", "scale": {"type": "log"} if log else {"zero": False, "nice": False}}
    return {"x": x, "y": y}


def _time_axis(window: Shown) -> tuple[int, str, int]:
    """(size, unit, origin) of the labels: counted from a whole second, ms or us, so that they stay short."""
    for least, size, unit, whole in ((5e8, 10**9, "s", 0), (5e5, 10**6, "ms", 10**9), (500, 1000, "µs", 10**6)):
        if window.span >= least:
            return size, unit, max(window.from_ns // whole, 0) * whole if whole else 0
    return 1, "ns", max(window.from_ns // 1000, 0) * 1000


def _legend(panel: Panel, alone: bool) -> dict[str, Any]:
    """Colours and dashes of the lines; one line has no name, unless others were left out."""
    labels = [label for label, _, _ in panel.legend]
    legend = {"orient": "top", "title": None, "symbolType": "stroke", "symbolSize": 900}  # long enough for a dash
    shown = None if len(labels) < 2 and not alone else legend
    return {
        name: {"type": "nominal", "scale": {"domain": labels, "range": values}, "legend": shown}
        for name, values in (
            ("color", [colour for _, colour, _ in panel.legend]),
            ("strokeDash", [list(dash) for _, _, dash in panel.legend]),
        )
    }


def _spoken(panel: Panel, kind: str, ends: tuple[float, float] | None) -> str:
    """The lines, and the greatest value."""
    if ends is None or not panel.legend:
        return "nothing"
    unit = unit_of(kind, ends[1])
    return f"{', '.join(label for label, _, _ in panel.legend)}; at most {ends[1] / unit.size:.3g} {unit.name}"


def _summary(shape: str, lane_data: Sequence[tuple[Any, Mapping[str, Any]]], lines: Sequence[Any]) -> str:
    """What a value stands for."""
    if not lines:
        return ""
    bucket = max(data["bucket_ns"] for _, data in lane_data)
    if shape == "rate":
        fine = lane_data[0][1]["fine_ns"]
        return f"bins of {show_time(bucket)}" + (
            f"; band: least and greatest {show_time(fine)}" if fine < bucket and len(lines) <= MOST_BANDS else ""
        )
    if not bucket:
        return "every packet" if shape == "packets" else ""
    return (
        f"of each {show_time(bucket)} the first, least, greatest and last"
        if any(line["rows"] > len(line["y"]) for line in lines)
        else ""
    )
