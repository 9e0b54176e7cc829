# SPDX-License-Identifier: Apache-2.0
"""Ranges as the value of a tuple: {from: 1ms, to: 200ms, steps: 6, scale: log}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from testctl_agent.spec.types import Amount

from testctl.plan.diagnostics import Problems, show
from testctl.plan.fields import Field, Fields, Table
from testctl.plan.numbers import NumberType, grid_of, written
from testctl.plan.yaml_reader import Mapping, Scalar, what

LOG = "log"
MAX_STEPS = 1000
RANGE: Table = {
    "from": Field("The first value", {"type": ["string", "number"]}, needed=True),
    "to": Field("The last value", {"type": ["string", "number"]}, needed=True),
    "steps": Field(
        "How many values; only a design with `sample` takes a range without",
        {"type": "integer", "minimum": 2, "maximum": MAX_STEPS},
    ),
    "scale": Field("linear (the default): even distances; log: even ratios", {"enum": ["linear", LOG]}),
}
OF_STEP = 100
"""A value is moved by at most this part of the distance to the next one, to have fewer digits."""
OF_RANGE = 2000
"""The same for values drawn from a whole range, which so has about a thousand values."""
_PRECISION = 40  # decimal digits
_UNIT = re.compile(r"\s*-?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*(.*?)\s*")


@dataclass(frozen=True)
class Range:
    """Values from `first` to `last`, both as written and included.

    kind   their type
    steps  how many, spaced evenly, or in equal ratios (log); 0: any between, which a design with `sample` draws
    """

    first: str
    last: str
    kind: NumberType
    log: bool = False
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.first} to {self.last}{', log' if self.log else ''}"

    @cached_property
    def _ends(self) -> tuple[Fraction, Fraction]:
        return _number(self.kind, self.first), _number(self.kind, self.last)

    def at(self, share: Fraction) -> Fraction:
        """The value at 0 (the first) to 1 (the last), in the base unit; the same on every machine."""
        low, high = self._ends
        if not self.log:
            return low + (high - low) * share
        with localcontext(prec=_PRECISION):
            power = (_decimal(high / low).ln() * _decimal(share)).exp()
            return low * Fraction(power)

    def texts(self) -> list[str]:
        """The values in the unit of `first`, with as few digits as OF_STEP allows."""
        exact = [self.at(Fraction(step, self.steps - 1)) for step in range(self.steps)]
        gaps = [b - a for a, b in pairwise(exact)]
        inner = [
            self._short(value, min(before, after) / OF_STEP)
            for value, (before, after) in zip(exact[1:-1], pairwise(gaps), strict=True)
        ]
        return [self.first, *inner, self.last]

    def drawn(self, share: Fraction) -> str:
        """The value at a share of the range, with as few digits as OF_RANGE allows."""
        low, high = self._ends
        value = self.at(share)
        with localcontext(prec=_PRECISION):
            width = value * Fraction(_decimal(high / low).ln()) if self.log else high - low
        return self._short(value, width / OF_RANGE)

    def number(self, text: str) -> Fraction:
        """A value of the range in its base unit."""
        return _number(self.kind, text)

    def _short(self, value: Fraction, most: Fraction) -> str:
        """The text of the value with the fewest digits that is at most so far from it."""
        match = _UNIT.fullmatch(self.first)
        assert match is not None, "it was read as a number"
        unit = match[1]
        size = Fraction(self.kind.of.units[unit]) if isinstance(self.kind, Amount) else Fraction(1, 100 if unit else 1)
        low, high = self._ends
        for near in _rounded(value / size):
            base = Fraction(near) * size
            if base % grid_of(self.kind) == 0 and abs(base - value) <= most and low <= base <= high:
                return f"{near:f}{unit}"
        return written(self.kind, value)


def _rounded(number: Fraction) -> Iterator[Decimal]:
    """The number with 1, 2, … 17 digits."""
    with localcontext(prec=_PRECISION):
        exact = _decimal(number)
    for digits in range(1, 18):
        with localcontext(prec=digits):
            near = +exact
        yield near


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _number(kind: NumberType, raw: object) -> Fraction:
    """In the base unit.  Raises ValueError "want …; got …"; also for a word, such as none."""
    value = kind.parse(raw)
    if isinstance(value, str):
        raise ValueError(f"want a number; got {value!r}")
    return Fraction(int(value)) if isinstance(value, int) else Fraction(str(value))


def read_range(node: Mapping, who: str, kind: NumberType, problems: Problems) -> Range | None:
    """None after a fault, which is among the problems."""
    before = len(problems.lines)
    fields = Fields(node, who, RANGE, problems)
    ends: dict[str, tuple[str, Fraction]] = {}
    for name in ("from", "to"):
        end = fields.nodes.get(name)
        if end is None:
            continue
        try:
            if not isinstance(end, Scalar) or end.empty:
                raise ValueError(f"want {kind.want}; got {what(end)}")
            ends[name] = end.text, _number(kind, end.value)
        except ValueError as error:
            problems.add(end.place, f"{who}: {name}: {error}")
    steps = fields.integer("steps", 0)
    scale = fields.choice("scale", "linear")
    if len(ends) < len(("from", "to")) or len(problems.lines) > before:
        return None
    (first, low), (last, high) = ends["from"], ends["to"]
    if low >= high:
        problems.add(fields.nodes["to"].place, f"{who}: to: want more than from, which is {first}; got {show(last)}")
        return None
    if scale == LOG and low <= 0:
        problems.add(fields.nodes["from"].place, f"{who}: from: want more than 0 on a scale log; got {show(first)}")
        return None
    read = Range(first, last, kind, scale == LOG, steps)
    texts = read.texts() if steps else []
    again = [b for a, b in pairwise(texts) if _number(kind, a) == _number(kind, b)]
    if again:
        place = fields.nodes["steps"].place
        problems.add(place, f"{who}: steps: want fewer values, as two of them are rounded to {again[0]}; got {steps}")
        return None
    return read
