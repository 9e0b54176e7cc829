# SPDX-License-Identifier: Apache-2.0
"""A quantity that changes at given times, and the times at which a link is down.

    schedule = first {";" TIME value}        such as "100mbit; 2s 20mbit; 4s none"
    first, value = a quantity with its unit, or a word that stands for none
    down     = "none" | TIME "-" TIME {";" TIME "-" TIME}      such as "2s-3s; 5s-5500ms"

Times count from the start of the traffic.  The first value is valid from the beginning, each other one from its time
on, until the next.  At the second time of a pair the link is up again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from testctl_agent.spec.units import Duration, Quantity

NONE = "none"
MAX_STEPS = 1024
"""As many as the port's model holds (p4c_ebpf/runtime/link_model.h)."""
LONGEST_NS = 10**15


@dataclass(frozen=True)
class Step:
    """From at_ns after the start of the traffic on; value None: none."""

    at_ns: int
    value: int | None


def is_schedule(value: object) -> bool:
    """Whether a value is the text of a schedule, and not one quantity."""
    return isinstance(value, str) and ";" in value


def parse(text: str, quantity: Callable[[str], int | None]) -> tuple[Step, ...]:
    """The steps of a text; `quantity` reads one value.  Raises ValueError "want …; got …"."""
    parts = [part.strip() for part in text.split(";")]
    if len(parts) > MAX_STEPS:
        raise ValueError(f"want at most {MAX_STEPS} steps; got {len(parts)}")
    steps = [Step(0, quantity(parts[0]))]
    for part in parts[1:]:
        at, blank, value = part.partition(" ")
        if not blank:
            raise ValueError(f"want a time and a value in each step after the first; got {part!r}")
        steps.append(Step(int(time(at)), quantity(value.strip())))
    for step, following in pairwise(steps):
        if step.at_ns >= following.at_ns:
            got = f"{Duration(following.at_ns)} after {Duration(step.at_ns)}"
            raise ValueError(f"want steps in the order of their times; got {got}")
    return tuple(steps)


def show(steps: Sequence[Step], of: type[Quantity]) -> str:
    """The canonical text: what parse() reads back."""
    texts = [NONE if step.value is None else str(of(step.value)) for step in steps]
    return "; ".join([texts[0], *(f"{Duration(s.at_ns)} {t}" for s, t in zip(steps[1:], texts[1:], strict=True))])


def steps_of(value: object, of: type[Quantity]) -> tuple[Step, ...]:
    """The steps of a setting: of a schedule, or one of a quantity in its base unit, of "none" or of None."""
    if is_schedule(value):
        return parse(str(value), lambda text: None if text == NONE else int(of.parse(text)))
    return (Step(0, None if value is None or value == NONE else int(str(value))),)


def value_at(steps: Sequence[Step], at_ns: int) -> int | None:
    return steps[max(bisect_right(steps, at_ns, key=lambda step: step.at_ns) - 1, 0)].value


def parse_down(text: str) -> tuple[tuple[int, int], ...]:
    """(down from, up again at) in ns, in order.  Raises ValueError "want …; got …"."""
    if text.strip() == NONE:
        return ()
    pairs: list[tuple[int, int]] = []
    for part in text.split(";"):
        low, dash, high = part.strip().partition("-")
        if not dash:
            raise ValueError(f"want pairs of times such as 2s-3s, or {NONE}; got {part.strip()!r}")
        pair = int(time(low.strip(), least=0)), int(time(high.strip()))
        if pair[0] >= pair[1] or (pairs and pair[0] <= pairs[-1][1]):
            raise ValueError(f"want times in their order; got {part.strip()!r}")
        pairs.append(pair)
    if len(pairs) > MAX_STEPS:
        raise ValueError(f"want at most {MAX_STEPS} times; got {len(pairs)}")
    return tuple(pairs)


def show_down(times: Sequence[tuple[int, int]]) -> str:
    return "; ".join(f"{Duration(low)}-{Duration(high)}" for low, high in times) or NONE


def time(text: str, least: int = 1) -> Duration:
    """A time after the start of the traffic, in ns."""
    value = Duration.parse(text)
    if not least <= value <= LONGEST_NS:
        raise ValueError(f"want a time from {Duration(least)} to {Duration(LONGEST_NS)}; got {text!r}")
    return value
