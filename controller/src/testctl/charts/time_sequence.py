# SPDX-License-Identifier: Apache-2.0
"""The time-sequence figure, in the manner of tcptrace: packets with their bytes, ACKs, windows, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testctl.charts.chart import INK
from testctl.charts.panel import DASHES, DOTTED, Look, Panel, times
from testctl.charts.style import ACK, DATA, FATE_COLOURS, RETRANS, SACK, UNA, WINDOW
from testctl.curves import Window, seq
from testctl.records.schema import CE

MANY, FEW = 300, 100
"""Marks of one kind where each packet is drawn, and on a line that they only accompany: more hide each other."""

FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
"""Of TCP, from the lowest bit."""

_SYMBOLS = {seq.CUT: "triangle-down", seq.MARKED: "diamond", seq.RETRANSMISSION: "cross", seq.LOST: "cross"}
_COLOURS = {
    seq.DATA: DATA, seq.RETRANSMISSION: RETRANS, seq.ACKS: ACK, seq.SACKED: SACK, seq.EDGE: WINDOW, seq.ALLOWED: UNA,
    seq.LOST: INK, **FATE_COLOURS,
}  # fmt: skip
_HELD = {seq.ACKS: DASHES[0], seq.EDGE: DASHES[1], seq.ALLOWED: DOTTED}
"""Lines that hold until the next packet, and their dashes."""


def draw_packets(panel: Panel, line: Mapping[str, Any], _: Look, window: Window, data: Mapping[str, Any]) -> None:
    """Packets as bars of their bytes where each is there, else lines; marks for what became of them."""
    name, t = str(line["name"]), times(line, window)
    colour, y, each = _COLOURS[name], line["y"], not data["bucket_ns"]
    label = f"{name} ({line['rows']})" if name in _SYMBOLS else name
    panel.name((label, colour, _HELD.get(name, DASHES[0])))
    tips = {"tip": _tips(line)} if each and "flags" in line else {}
    if each and "length" in line:
        low = [high - length for high, length in zip(y, line["length"], strict=True)]
        width = 3.6 if name == seq.RETRANSMISSION else 1.2 if name == seq.SACKED else 2.2
        panel.add({"type": "rule", "strokeWidth": width}, {"t": t, "y": low, "y2": y, **tips}, label)
        if len(t) <= MANY:
            panel.add(
                {"type": "tick", "orient": "horizontal", "bandSize": 5, "thickness": 1.5, "color": colour},
                {"t": t, "y": y},
            )
    elif name in _SYMBOLS:
        every = -(-len(t) // (MANY if each else FEW)) or 1
        filled = name in (seq.CUT,)
        panel.add({"type": "point", "shape": _SYMBOLS[name], "filled": filled, "size": 45 if len(t) <= 60 else 22,
                   "opacity": 1 if len(t) <= 60 else 0.6}, {"t": t[::every], "y": y[::every]}, label)  # fmt: skip
    else:
        how = {"interpolate": "step-after"} if name in _HELD else {}
        panel.add({"type": "line", "strokeWidth": 1.3, **how}, {"t": t, "y": y, **tips}, label)


def _tips(line: Mapping[str, Any]) -> list[str]:
    """Each packet in words: its bytes, its flags but ACK, and CE."""
    tips = []
    for n, high in enumerate(line["y"]):
        low = f"{high - line['length'][n]}:" if "length" in line else ""
        flags = [word for bit, word in enumerate(FLAGS) if word != "ACK" and line["flags"][n] >> bit & 1]
        tips.append(" ".join([f"{low}{high}", *flags, *(["CE"] if line["ecn"][n] == CE else [])]))
    return tips
