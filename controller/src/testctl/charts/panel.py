# SPDX-License-Identifier: Apache-2.0
"""A figure over time while it is made: layers, their data, and the legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testctl.charts.chart import Columns
from testctl.curves import Window

Look = tuple[str, str, Sequence[int]]
"""(label, colour, dash) of a line."""

DASHES: Sequence[Sequence[int]] = ((1, 0), (6, 3), (2, 2), (14, 3, 2, 3), (1, 4), (10, 6), (6, 2, 2, 2, 2, 2), (20, 3))
"""Of the connections of a flow, in order: told apart where there are three or four, in figures and their legends."""

DOTTED = (2, 3)


@dataclass
class Panel:
    """What becomes a Chart: layers, their data, and the legend's entries (label, colour, dash)."""

    layers: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, Columns] = field(default_factory=dict)
    legend: list[Look] = field(default_factory=list)
    lines: list[dict[str, str]] = field(default_factory=list)

    def add(self, mark: Mapping[str, Any], columns: Columns, label: str = "", **more: Any) -> None:
        """A layer with data of its own.  label: of the line in the legend, whose colour and dash it has."""
        name = f"l{len(self.data)}"
        ends = {channel: {"field": channel} for channel in ("x2", "y2") if channel in columns}
        encoding = {"x": {"field": "t"}, "y": {"field": "y"}, **ends, **more}
        if label:
            encoding |= {"color": {"datum": label}, "strokeDash": {"datum": label}}
            if "y2" not in columns or mark["type"] == "rule":
                self.lines.append({"set": name, "label": label})
        self.layers.append({"data": {"name": name}, "mark": {"clip": True, **mark}, "encoding": encoding})
        self.data[name] = columns

    def name(self, look: Look) -> None:
        """An entry of the legend."""
        if look not in self.legend:
            self.legend.append(look)


def times(line: Mapping[str, Any], window: Window) -> list[int]:
    """Of its values, in ns from T0."""
    if "t" in line:
        return [t + window.from_ns for t in line["t"]]
    return [line["t0"] + window.from_ns + n * line["dt"] for n in range(len(line["y"]))]
