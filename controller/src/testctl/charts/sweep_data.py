# SPDX-License-Identifier: Apache-2.0
"""What a figure of a sweep shows: axes, and the values of the points that are one place of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from testctl.core.units import Unit
from testctl.core.words import counted
from testctl.plan.sweep_figures import FLOW, HEATMAP


@dataclass(frozen=True)
class Axis:
    """A swept parameter.

    key      "entity.parameter", or "flow": each flow of a point
    values   as written; ascending where they are numbers, else in the order of the points
    numbers  the same in the base unit (ns, bit/s or bytes); empty where they are no numbers
    log      whether the values are spaced for a logarithmic axis
    """

    key: str
    values: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    log: bool = False


@dataclass(frozen=True)
class Cell:
    """The points that have the same value of every parameter that is shown.

    values   the metric of each that has one, ascending
    missing  how many have none
    names    how each of these points differs from the others of the cell, in the order of `values`
    """

    values: tuple[float, ...] = ()
    missing: int = 0
    names: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def y(self) -> float | None:
        """The median; None without values."""
        return float(np.median(self.values)) if self.values else None

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.values)) if self.values else None

    @property
    def lo(self) -> float | None:
        return self.values[0] if self.values else None

    @property
    def hi(self) -> float | None:
        return self.values[-1] if self.values else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        if not self.values:
            return None
        low, high = np.quantile(self.values, (0.25, 0.75))
        return float(low), float(high)


@dataclass(frozen=True)
class Line:
    """One value of `by`.  cells: one for each value of x; one alone in a figure of kind cdf."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Panel:
    """One value of `facet`; the only panel has the name ""."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Sweep:
    """What a figure shows.

    unit    the metric's values are divided by its size
    log     whether the metric's axis is logarithmic
    points  how many the figure is about; where a value is of a flow, their flows
    missing why points have no value -> how many
    over    other parameters, and "repeat", that differ between points of a cell
    of      what a value is where the point has several flows
    """

    title: str
    kind: str
    metric: str
    unit: Unit
    x: Axis
    by: Axis
    facet: Axis
    panels: tuple[Panel, ...]
    log: bool = False
    points: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    over: tuple[str, ...] = ()
    of: str = ""

    @cached_property
    def values(self) -> list[float]:
        return [value for panel in self.panels for line in panel.lines for cell in line.cells for value in cell.values]

    def value(self, cell: Cell) -> float | None:
        """What the figure shows of a cell: the median, in a heatmap the mean; None without values."""
        return cell.mean if self.kind == HEATMAP else cell.y

    @property
    def middle(self) -> str:
        """What that is, in a word."""
        return "mean" if self.kind == HEATMAP else "median"

    @property
    def intervals(self) -> bool:
        """Whether a value is of several points."""
        return self.most > 1

    @property
    def most(self) -> int:
        """Points that one value is of, at most."""
        return max((cell.n for panel in self.panels for line in panel.lines for cell in line.cells), default=0)

    @property
    def label(self) -> str:
        """The metric with the unit of the axis."""
        return f"{self.metric} ({self.unit.name})" if self.unit.name else self.metric

    @property
    def caption(self) -> str:
        """What one value stands for, what intervals are, and what is missing."""
        most = self.most
        noun = "flow" if FLOW in (self.x.key, self.by.key, self.facet.key) else "point"
        parts = [f"values: {self.of}"] if self.of else []
        several = f"{'up to ' if self._uneven else ''}{most} points each" + self._over
        if self.kind == "cdf":
            parts.append(counted(len(self.values), noun))
        elif most > 1:
            ends = "quartiles, least and greatest" if self.kind == "box" else "from least to greatest"
            what = f"{self.middle}, {ends}"
            parts.append(f"{what} of {several}")
        elif most:
            parts.append("one point each")
        if self.missing:
            count = sum(self.missing.values())
            why = ", ".join(f"{many} {reason}" for reason, many in self.missing.items())
            parts.append(f"{count} of {counted(self.points, noun)} {'has' if count == 1 else 'have'} no value: {why}")
        return "; ".join(parts)

    @property
    def _uneven(self) -> bool:
        return len({cell.n for panel in self.panels for line in panel.lines for cell in line.cells if cell.n}) > 1

    @property
    def _over(self) -> str:
        return f" ({', '.join(self.over)})" if self.over else ""
