# SPDX-License-Identifier: Apache-2.0
"""The specification of a curve: how it is binned and drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from testctl.metrics.core.view import FlowView
from testctl.records import Records
from testctl.records.schema import Array, Ints


@dataclass(frozen=True)
class CurveSpec:
    """A curve file: `name` is the file's, which `testctl series --metric` takes.

    value    the column of `compute` that is drawn, and put into bins
    binned   what a bin has: "sum" of the values and their rate, "mean" and largest, in µs, the "average", the
             "most", or the "last" row
    by       columns that group the rows of a bin
    title    of its figure; "" where there is none
    of       short description of the figure
    kind     the unit of y, in its base: "rate" (bit/s), "size" (bytes), "time" (ns), "share" (millionths) or "count"
             (packets)
    shape    how it is drawn: "rate", "packets" (a time-sequence plot), "steps", "line", or "line with gaps", where
             nothing is known between two packets
    each     the figure shows every "flow" or the chosen "connection"
    there    a quick test whether the records of a flow have the data
    zero, large, stalls   the axis of y begins at 0; a higher figure; stalls are shaded in it
    log      the y axis is logarithmic if most values would be invisible on a linear one
    whole    it is of the point: the same for each of its flows
    place    of the figure on the page, ascending
    """

    name: str
    value: str
    binned: Literal["sum", "mean", "average", "most", "last"]
    by: tuple[str, ...] = ()
    title: str = ""
    of: str = ""
    kind: Literal["rate", "size", "time", "share", "count"] = "count"
    shape: Literal["rate", "packets", "steps", "line", "line with gaps"] = "line"
    each: Literal["flow", "connection"] = "flow"
    there: Callable[[FlowView], bool] = lambda flow: len(flow.at_sink) > 0
    zero: bool = False
    large: bool = False
    stalls: bool = False
    log: bool = False
    whole: bool = False
    place: int = 100


@dataclass(frozen=True)
class Line:
    """One line of a figure, every sample of it: time_ns ascending, values in the base unit.

    detail   {name: values} of each sample, shown where all are
    packets  (records, rows): what its samples are there; `columns` of them are detail too, read for what is shown
    beside   drawn with other lines: shown with single packets, without effect on the y axis
    """

    name: str
    time_ns: Ints
    value: Array
    detail: Mapping[str, Array] = field(default_factory=dict)
    beside: bool = False
    packets: tuple[Records, Ints] | None = None
    columns: tuple[str, ...] = ()

    def plain(self, part: slice) -> Line:
        """Its samples of a slice, without detail."""
        return Line(self.name, self.time_ns[part], self.value[part], beside=self.beside)

    def cut(self, part: slice) -> Line:
        """Its samples of a slice, with all their detail."""
        detail = {name: values[part] for name, values in self.detail.items()}
        if self.packets is not None:
            records, index = self.packets
            detail |= {name: records.values(name, index[part]) for name in self.columns}
        return Line(self.name, self.time_ns[part], self.value[part], detail, self.beside)

    def __len__(self) -> int:
        return len(self.time_ns)
