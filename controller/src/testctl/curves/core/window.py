# SPDX-License-Identifier: Apache-2.0
"""A window of time that a figure shows, and where the axis of a whole point ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testctl_agent.params.flow.traffic import ends_by_itself, stop_ns
from testctl_agent.spec.errors import PlanError

LONGEST_NS = 1 << 52
"""Greatest time from T0 in a request: exact in JavaScript."""

_A_LITTLE = 1.02
"""Factor by which a point may exceed its duration before the axis is extended: packets in flight."""


@dataclass(frozen=True)
class Window:
    """The window on the screen, [from_ns, to_ns), with a number of buckets.

    low, high: the fetched range: half a window more on each side, for panning.
    alone: fetch the window only.
    """

    from_ns: int
    to_ns: int
    buckets: int
    alone: bool = False

    @classmethod
    def parse(cls, start: str, end: str, buckets: str) -> Window:
        """From the text of a URL.  Raises PlanError."""
        try:
            window = cls(int(start), int(end), min(max(int(buckets), 50), 2000))
        except ValueError as error:
            raise PlanError(f"from, to, px: want whole numbers; got {start!r}, {end!r}, {buckets!r}") from error
        if not -LONGEST_NS < window.from_ns < window.to_ns < LONGEST_NS:
            raise PlanError(f"from, to: want from < to, in ns; got {start}, {end}")
        return window

    @property
    def span(self) -> int:
        return self.to_ns - self.from_ns

    @property
    def low(self) -> int:
        return self.from_ns - (0 if self.alone else self.span // 2)

    @property
    def high(self) -> int:
        return self.to_ns + (0 if self.alone else self.span // 2)

    @property
    def bucket(self) -> int:
        """Width of a bucket in ns."""
        return max(-(-self.span // self.buckets), 1)


def round_width(ns: int) -> int:
    """The least of 1, 2, 5, 10, 20, … ns that is not below `ns`."""
    size = 1
    while True:
        for step in (1, 2, 5):
            if step * size >= ns:
                return step * size
        size *= 10


def shown_ns(document: Mapping[str, Any], last_ns: int) -> int:
    """The end of the time axis, which begins at 0.

    document  point.json
    last_ns   when the last packet was seen

    The requested duration; the time of the last packet when flows end with their bytes instead.
    """
    nominal = _nominal_ns(document)
    return nominal if nominal and last_ns <= nominal * _A_LITTLE else last_ns + 1


def _nominal_ns(document: Mapping[str, Any]) -> int:
    """The requested duration of a point; 0 where no flow has one.

    "duration_ns" of a point is an estimate if a flow ends with its bytes.
    """
    options = [flow.get("options", {}) for flow in document.get("flows", [])]
    lasting = [option for option in options if not ends_by_itself(option)]
    if len(lasting) == len(options):
        return int(document.get("duration_ns") or 0)
    return max((stop_ns(option) for option in lasting), default=0)
