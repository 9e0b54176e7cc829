# SPDX-License-Identifier: Apache-2.0
"""The least and the greatest value that an operation on whole numbers can have."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """The whole numbers from `low` to `high`, both included.

    An operator gives an interval that holds the result for all numbers of both operands, or EVERYTHING.  A division by
    0 is 0, and its remainder the dividend, as in BPF.
    """

    low: int
    high: int

    def __contains__(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval) -> Interval:
        return _over(operator.mul, self, other)

    def __floordiv__(self, other: Interval) -> Interval:
        return Interval(0, self.high) if min(self.low, other.low) >= 0 else EVERYTHING

    def __mod__(self, other: Interval) -> Interval:
        found = self // other
        return found if other.low <= 0 or found == EVERYTHING else Interval(0, min(self.high, other.high - 1))

    def __lshift__(self, by: Interval) -> Interval:
        return _over(operator.lshift, self, by) if by.low >= 0 and by.high <= _SHIFTS.high else EVERYTHING

    def __rshift__(self, by: Interval) -> Interval:
        return EVERYTHING if by.low < 0 or EVERYTHING in self else _over(operator.rshift, self, by.clamped(_SHIFTS))

    def __invert__(self) -> Interval:
        return Interval(~self.high, ~self.low)

    def __and__(self, other: Interval) -> Interval:
        masks = [one.high for one in (self, other) if one.low >= 0]
        return Interval(0, min(masks)) if masks else self | other

    def __or__(self, other: Interval) -> Interval:
        bits = max(number.bit_length() for number in (self.low, self.high, other.low, other.high))
        return Interval(-(1 << bits) if min(self.low, other.low) < 0 else 0, (1 << bits) - 1)

    __xor__ = __or__

    def hull(self, other: Interval) -> Interval:
        """What holds both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def clamped(self, to: Interval) -> Interval:
        """Of numbers that become the nearest one in `to`."""
        return Interval(min(max(self.low, to.low), to.high), max(min(self.high, to.high), to.low))

    def followed(self) -> Interval:
        """This, or EVERYTHING for bounds that are too far away."""
        return self if self in EVERYTHING else EVERYTHING

    def wrapped(self, bits: int) -> Interval:
        """Of numbers whose lowest bits are taken as two's complement."""
        return self if self in signed(bits) else signed(bits)


def unsigned(bits: int) -> Interval:
    return Interval(0, (1 << bits) - 1)


def signed(bits: int) -> Interval:
    """Two's complement."""
    return Interval(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _over(operation: Callable[[int, int], int], a: Interval, b: Interval) -> Interval:
    """Of an operation whose least and greatest results are those of its operands' bounds."""
    ends = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return Interval(min(ends), max(ends))


EVERYTHING = Interval(-(1 << 300), 1 << 300)
"""What is not known.  Bounds beyond these are not followed: no C type holds them."""
_SHIFTS = Interval(0, 512)
"""A right shift by more gives what the greatest of these gives."""
