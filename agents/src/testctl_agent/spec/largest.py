# SPDX-License-Identifier: Apache-2.0
"""The largest packet that a link takes, over time, and whether the sender of a larger one gets an ICMP message.

    largest = size {";" TIME size}        such as 1400B, "1400B icmp" or "none; 2s 1400B icmp; 4s none"
    size    = "none" | BYTES ["icmp"]

It is a schedule (spec/schedule.py).  Bytes count from the IP header on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testctl_agent.spec import schedule
from testctl_agent.spec.units import Bytes, Duration

ICMP = "icmp"
_ANSWERED = 2**32
"""Flag in a step's value: a larger packet is answered."""


@dataclass(frozen=True)
class Largest:
    """From at_ns after the start of the traffic on; bytes 0: of any size."""

    at_ns: int
    bytes: int
    answered: bool


def is_answered(value: object) -> bool:
    """Whether a value says anything of ICMP."""
    return isinstance(value, str) and ICMP in value.replace(";", " ").split()


def canonical(text: str, size: Callable[[str], int | None]) -> str:
    """The text that reads back as the same; `size` reads a size without `icmp`.  Raises ValueError "want …; got …"."""
    return "; ".join(
        (f"{Duration(step.at_ns)} " if step.at_ns else "")
        + (schedule.NONE if not step.bytes else str(Bytes(step.bytes)) + (f" {ICMP}" if step.answered else ""))
        for step in _parsed(text, size)
    )


def steps_of(value: object) -> tuple[Largest, ...]:
    """The steps of a setting: a number of bytes, a text, "none" or None."""
    if isinstance(value, str) and (schedule.is_schedule(value) or is_answered(value)):
        return _parsed(value, lambda text: None if text == schedule.NONE else int(Bytes.parse(text)))
    return tuple(Largest(step.at_ns, step.value or 0, False) for step in schedule.steps_of(value, Bytes))


def _parsed(text: str, size: Callable[[str], int | None]) -> tuple[Largest, ...]:
    def quantity(value: str) -> int | None:
        bare, blank, word = value.rpartition(" ")
        if not blank or word != ICMP:
            return size(value)
        count = size(bare.strip())
        if count is None:
            raise ValueError(f"want a size before {ICMP}; got {value!r}")
        return count | _ANSWERED

    return tuple(
        Largest(step.at_ns, (step.value or 0) % _ANSWERED, (step.value or 0) >= _ANSWERED)
        for step in schedule.parse(text, quantity)
    )
