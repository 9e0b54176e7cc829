# SPDX-License-Identifier: Apache-2.0
"""The result of one packet action on one connection, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from testctl_agent.spec import fate
from testctl_agent.spec.fate import LAST, Fate

from testctl.core.point import PointSpec
from testctl.records.schema import Array

MAX_RANGES = 8
"""Ranges of numbers that are written out; more are counted."""


@dataclass(frozen=True)
class RuleFinding:
    """One rule on one connection: the request and the result.

    rule      canonical text; `place` is its number among the switch's rules
    asked     number of packets that it selects, including those that never arrived
    happened  number of packets to which it was applied; `which`: their ordinals, or offsets of their first bytes
    note      why it was not applied to some packets, if that is no fault; else ""
    fault     why the point is invalid; "" if everything happened as requested
    """

    switch: str
    rule: str
    place: int
    flow: str
    conn: int
    asked: int
    happened: int
    which: str
    note: str = ""
    fault: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def requested_fates(point: PointSpec) -> dict[str, tuple[Fate, ...]]:
    """Switch → its packet actions, of a point.json; only switches that have some."""
    requested: dict[str, tuple[Fate, ...]] = {}
    for switch in point.topology.switches:
        text = point.settings.get(switch, {}).get("fate")
        if text and (rules := fate.parse(str(text))):
            requested[switch] = rules
    return requested


def ranges_of(numbers: Array) -> list[tuple[int, int]]:
    """Ascending numbers as ranges, both ends included."""
    if not len(numbers):
        return []
    ordered = np.unique(numbers)
    breaks = np.flatnonzero(np.diff(ordered) != 1)
    first, last = np.append(0, breaks + 1), np.append(breaks, len(ordered) - 1)
    return list(zip(ordered[first].tolist(), ordered[last].tolist(), strict=True))


def words_of(ranges: Sequence[tuple[int, int]]) -> str:
    """Ranges as text: "1-4, 7, 9-"; after MAX_RANGES, the total count."""
    if not ranges:
        return "none"
    shown = [str(low) if low == high else f"{low}-{'' if high == LAST else high}" for low, high in ranges[:MAX_RANGES]]
    if len(ranges) <= MAX_RANGES:
        return ", ".join(shown)
    total = sum(high - low + 1 for low, high in ranges)
    return f"{', '.join(shown)}, … ({total} in all)"
