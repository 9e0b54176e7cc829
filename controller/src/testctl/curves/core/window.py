# SPDX-License-Identifier: Apache-2.0
"""A window of time that a figure shows, and where the axis of a whole point ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testctl_agent.params.flow.traffic import ends_by_itself, stop_ns
from testctl_agent.spec.errors import PlanError

LONGEST_NS = 1 << 52
"""Farthest time from T0 that is asked for: a number that JavaScript holds exactly."""

_A_LITTLE = 1.02
"""What a point may take beyond its duration before the axis follows: the last packets under way."""


@dataclass(frozen=True)
class Window:
    """What of a point is on the screen, [from_ns, to_ns), in so many buckets.

    low, high: what is fetched: half a window more at each side, so that a little panning has something to show.
    alone: no more than the window itself.
    """

    from_ns: int
    to_ns: int
    buckets: int
    alone: bool = False

    @classmethod
    def parse(cls, start: str, end: str, buckets: str) -> Window:
        """From what an address says.  Raises PlanError."""
        try:
            found = cls(int(start), int(end), min(max(int(buckets), 50), 2000))
        except ValueError as error:
            raise PlanError(f"from, to, px: want whole numbers; got {start!r}, {end!r}, {buckets!r}") from error
        if not -LONGEST_NS < found.from_ns < found.to_ns < LONGEST_NS:
            raise PlanError(f"from, to: want from < to, in ns; got {start}, {end}")
        return found

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


def shown_ns(asked: Mapping[str, Any], last_ns: int) -> int:
    """The end of the time axis, which begins at 0.

    asked    point.json
    last_ns  when the last packet was seen

    As long as was asked for; when the flows end with their bytes nobody asked, and it is what happened.
    """
    nominal = _nominal_ns(asked)
    return nominal if nominal and last_ns <= nominal * _A_LITTLE else last_ns + 1


def _nominal_ns(asked: Mapping[str, Any]) -> int:
    """How long a point should take by what was asked for; 0 where no flow has a duration.

    "duration_ns" of a point is an estimate where some flow ends by itself.
    """
    options = [flow.get("options", {}) for flow in asked.get("flows", [])]
    lasting = [one for one in options if not ends_by_itself(one)]
    if len(lasting) == len(options):
        return int(asked.get("duration_ns") or 0)
    return max((stop_ns(one) for one in lasting), default=0)
