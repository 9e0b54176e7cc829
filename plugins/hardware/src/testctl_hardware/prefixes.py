# SPDX-License-Identifier: Apache-2.0
"""Ranges as prefixes, for targets whose range keys are too narrow: Tofino's end at 20 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from testctl_agent.switch.drivers.driver import Entry, Range, Ternary


def prefixes(low: int, high: int, bits: int) -> Iterator[Ternary]:
    """The fewest prefixes that cover `low` to `high`, both included, of a field that wide; from the low end up."""
    every = (1 << bits) - 1
    while low <= high:
        size = low & -low or 1 << bits
        while low + size - 1 > high:
            size >>= 1
        yield Ternary(low, every ^ (size - 1))
        low += size


def without_ranges(entry: Entry, ternary: Mapping[str, int]) -> Iterator[Entry]:
    """The rows that match what `entry` does, where these fields (→ bits) take prefixes only."""
    ranges = {name: key for name, key in entry.keys.items() if name in ternary and isinstance(key, Range)}
    for chosen in product(*(prefixes(key.low, key.high, ternary[name]) for name, key in ranges.items())):
        yield replace(entry, keys={**entry.keys, **dict(zip(ranges, chosen, strict=True))})
