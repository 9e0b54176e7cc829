# SPDX-License-Identifier: Apache-2.0
"""Types of parameters whose values are numbers: their quantity, and how a number is written as their value."""

from __future__ import annotations

from fractions import Fraction

from testctl_agent.params.flow.workload import Number
from testctl_agent.params.types import InSteps, OrNone
from testctl_agent.spec.types import Amount, Int, Value, ValueType, shown
from testctl_agent.spec.units import Bytes, Quantity

from testctl.plan.formula import DIMENSIONS, NUMBER, SIZES, Dimension

NumberType = Amount | Int | OrNone | Number
NUMBER_TYPES = (Amount, Int, OrNone, Number)
_DECIMALS = 9  # that a Number may have


def quantity_of(kind: NumberType) -> type[Quantity] | None:
    """Rate, Bytes or Duration; None: numbers without a unit."""
    if isinstance(kind, Amount):
        return kind.of
    whole = kind.of if isinstance(kind, OrNone) else kind
    return Bytes if isinstance(whole, Int) and whole.unit == "bytes" else None


def dimension_of(kind: NumberType) -> Dimension:
    quantity = quantity_of(kind)
    return DIMENSIONS[quantity] if quantity else NUMBER


def size_of(kind: NumberType) -> Fraction:
    """What a value of 1 is, in bits and seconds."""
    quantity = quantity_of(kind)
    return SIZES[quantity] if quantity else Fraction(1)


def grid_of(kind: NumberType) -> Fraction:
    """The distance between two values that the type takes."""
    if isinstance(kind, Number):
        return Fraction(1, 10**_DECIMALS)
    return Fraction(kind.step if isinstance(kind, InSteps) else 1)


def written(kind: NumberType, number: Fraction) -> str:
    """The nearest value that the type can have, in or out of its range, as a plan writes it."""
    grid = grid_of(kind)
    near = round(number / grid) * grid
    if isinstance(kind, Amount):
        return str(kind.of(near))
    if isinstance(kind, Number):
        return f"{int(near * 10**_DECIMALS) / 10**_DECIMALS:.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return str(int(near))


def value_shown(kind: ValueType, value: Value) -> str:
    """A value as settings have it, as a plan writes it."""
    number = isinstance(kind, Amount) and isinstance(value, int) and not isinstance(value, bool)
    return str(kind.of(value)) if number and isinstance(kind, Amount) else shown(value)
