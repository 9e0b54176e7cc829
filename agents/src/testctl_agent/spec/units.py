# SPDX-License-Identifier: Apache-2.0
"""Quantities with units: integers that read "10gbit" and print themselves.

A Rate is in bits per second, Bytes in bytes, a Duration in nanoseconds.  Each is
an int, so arithmetic and JSON work unchanged.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import ClassVar, Self

_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-zµ/]*)\s*")
_LONGEST = 40  # characters; no sensible quantity is longer


class Quantity(int):
    """An integer in a base unit.  Subclasses give `units` and `want`."""

    units: ClassVar[dict[str, int]]
    shown: ClassVar[tuple[str, ...]]
    want: ClassVar[str]
    most: ClassVar[int] = 2**62

    @classmethod
    def parse(cls, raw: object) -> Self:
        """Read "1.5gbit" or a whole number in the base unit.

        Raises ValueError with the wanted form and the actual value.
        """
        wanted = f"want {cls.want}; got {raw!r}"
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise ValueError(wanted)
        text = str(raw)
        match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None or match[2] not in cls.units:
            raise ValueError(wanted)
        try:
            scaled = Decimal(match[1]) * cls.units[match[2]]
        except ArithmeticError as error:
            raise ValueError(f"{wanted}, which is too large") from error
        if scaled > cls.most:
            raise ValueError(f"{wanted}, which is too large")
        if scaled != int(scaled):
            raise ValueError(f"{wanted}, which is not a whole number of {cls.shown[-1]}")
        return cls(int(scaled))

    def __str__(self) -> str:
        for unit in self.shown:
            size = self.units[unit]
            if self >= size and (int(self) * 1000) % size == 0:
                return f"{Decimal(int(self)) / size:f}{unit}"
        return f"{int(self)}{self.shown[-1]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class Rate(Quantity):
    """Bits per second."""

    units: ClassVar[dict[str, int]] = {
        "": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9,
        "bps": 1, "kbps": 10**3, "Mbps": 10**6, "Gbps": 10**9,
        "Mbit/s": 10**6, "Gbit/s": 10**9, "Mb/s": 10**6, "Gb/s": 10**9,
    }  # fmt: skip
    shown: ClassVar[tuple[str, ...]] = ("gbit", "mbit", "kbit", "bit")
    want = "a rate such as 10gbit, 100mbit or 64kbit"


class Bytes(Quantity):
    """Bytes; k, m and g are decimal, KiB, MiB and GiB binary."""

    units: ClassVar[dict[str, int]] = {
        "": 1, "B": 1, "b": 1,
        "k": 10**3, "kB": 10**3, "KB": 10**3, "M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
    }  # fmt: skip
    shown: ClassVar[tuple[str, ...]] = ("GB", "MB", "kB", "B")
    want = "a size such as 30kB, 64KiB or 1MB"


class Duration(Quantity):
    """Nanoseconds."""

    units: ClassVar[dict[str, int]] = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
    shown: ClassVar[tuple[str, ...]] = ("s", "ms", "us", "ns")
    want = "a time with its unit, such as 10s, 200ms, 20us or 5ns"

    @property
    def seconds(self) -> float:
        return int(self) / 1e9
