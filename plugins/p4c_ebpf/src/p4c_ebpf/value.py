# SPDX-License-Identifier: Apache-2.0
"""C text of a number, its bounds, and the C type that holds them."""

from __future__ import annotations

from dataclasses import dataclass

from p4c_ebpf.interval import Interval


@dataclass(frozen=True)
class Value:
    """C text of a number and its bounds, both included."""

    text: str
    low: int
    high: int

    @property
    def range(self) -> Interval:
        return Interval(self.low, self.high)


def c_type(low: int, high: int) -> str | None:
    """The C type that holds both bounds; None: there is none."""
    if low >= 0:
        return "u64" if high < 1 << 64 else "u128" if high < 1 << 128 else None
    if low >= -(1 << 63) and high < 1 << 63:
        return "s64"
    return "s128" if low >= -(1 << 127) and high < 1 << 127 else None


def cast_to(value: Value, kind: str) -> str:
    """C of the value as a type that holds it."""
    return value.text if c_type(value.low, value.high) == kind else f"({kind}){value.text}"


def signed_value(text: str, width: int) -> Value:
    """The lowest `width` bits of a C value, as two's complement."""
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    size, kind, wide = (64, "s64", "u64") if width <= 64 else (128, "s128", "u128")
    return Value(f"((({kind})(({wide}){text} << {size - width})) >> {size - width})", low, high)
