# SPDX-License-Identifier: Apache-2.0
"""Alternative values of a tuple: words of its parameter, numbers in steps of a unit, values that the plan sweeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from testctl_agent.params.types import OrNone
from testctl_agent.spec.types import Amount, Choice, Int, Switch, Value, ValueType
from testctl_agent.spec.units import Quantity

from testctl.shrink.ranges import Axis

MAX_WORDS = 8
"""Greatest number of other words to try for a tuple."""
DIGITS = 2
"""Significant digits to which a number's range is looked for, if its unit is not coarser."""


@dataclass(frozen=True)
class Words:
    """A tuple whose other values are words."""

    others: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A tuple whose value is a number; `show` writes one as a plan does."""

    axis: Axis
    show: Callable[[int], str]


def choices(
    kind: ValueType,
    text: str,
    swept: Sequence[str],
    default: Value | None,
    passes: bool,
    files: Mapping[str, str] = MappingProxyType({}),
) -> Words | Numbers:
    """The other values of a tuple of that type.

    text     its value as written
    swept    the values that the plan gives it
    default  the value without the tuple (None: unknown), and whether that is known to pass
    files    path -> value of the files of values that the run kept: another file's value is not tried
    """
    value = kind.parse(files.get(text, text))
    number = kind.of if isinstance(kind, OrNone) else kind
    if isinstance(number, Amount | Int) and isinstance(value, int):
        base = _number(kind, default)
        hints = {n for n in (_number(kind, other) for other in swept) if n is not None and n != value}
        axis = Axis(
            value=int(value),
            step=_step(number, text, int(value)),
            least=number.least,
            most=number.most,
            hints=tuple(sorted(hints | ({base} if base not in (None, value) else set()))),
            passes=(base,) if passes and base is not None and base != value else (),
        )
        return Numbers(axis, _shower(number))
    named = ("on", "off") if isinstance(kind, Switch) else kind.values if isinstance(kind, Choice) else ()
    known = [word for word in dict.fromkeys([*swept, *map(str, named)]) if "/" not in word or word in files]
    others = [word for word in known if kind.parse(files.get(word, word)) != value]
    return Words(tuple(others[:MAX_WORDS]))


def _number(kind: ValueType, value: Value | None) -> int | None:
    """The value as a number in its base unit; None for a word such as none."""
    if isinstance(value, str):
        try:
            value = kind.parse(value)
        except ValueError:
            return None
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _step(kind: Amount | Int, text: str, value: int) -> int:
    """The unit as written (a tenth of it, for a value of one or less), but no finer than DIGITS digits."""
    digits: int = 10 ** max(len(str(abs(value))) - DIGITS, 0)
    if isinstance(kind, Int):
        return digits
    unit = kind.of.units.get(re.sub(r"[\s0-9.eE+-]*", "", text, count=1), 1)
    return max(unit if value >= 2 * unit else unit // 10, digits, 1)


def _shower(kind: Amount | Int) -> Callable[[int], str]:
    if isinstance(kind, Int):
        return str
    quantity: type[Quantity] = kind.of
    return lambda value: str(quantity(value))
