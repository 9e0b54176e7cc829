# SPDX-License-Identifier: Apache-2.0
"""When an application writes.

greedy                          always
on-off 100ms/50ms               writes for 100 ms, is silent for 50 ms, and so on
stall at 20kB for 500ms         is silent for 500 ms once it has written 20 kB
stall at 1s for 500ms           is silent from 1 s to 1.5 s
schedule 0s:20kB,300ms:10kB     writes 20 kB at once and 10 kB at 300 ms, and ends

Times count from the flow's start.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.schedule import time
from testctl_agent.spec.types import Value
from testctl_agent.spec.units import Bytes, Quantity

MAX_WRITES = 1024
_LONGEST_TEXT = 64 * MAX_WRITES
_FORM = re.compile(r"(greedy|on-off|stall at|schedule)(?: (.+))?")


def _bytes(text: str) -> Bytes:
    value = Bytes.parse(text)
    if not 1 <= value <= 2**48:
        raise ValueError(f"want a size from 1B to 2**48B; got {text!r}")
    return value


def _pair(text: str, between: str) -> tuple[str, str]:
    left, separator, right = text.partition(between)
    if not separator:
        raise ValueError(f"want {between.strip()!r} in it; got {text!r}")
    return left.strip(), right.strip()


def _on_off(rest: str, show: Callable[[Quantity], str]) -> str:
    on, off = (time(part) for part in _pair(rest, "/"))
    return f"on-off {show(on)}/{show(off)}"


def _stall(rest: str, show: Callable[[Quantity], str]) -> str:
    at, length = _pair(rest, " for ")
    place: Quantity
    try:
        place = time(at, least=0)
    except ValueError:
        place = _bytes(at)
    return f"stall at {show(place)} for {show(time(length))}"


def _schedule(rest: str, show: Callable[[Quantity], str]) -> str:
    pairs = [_pair(item, ":") for item in rest.split(",")]
    writes = [(time(at, least=0), _bytes(size)) for at, size in pairs]
    if len(writes) > MAX_WRITES:
        raise ValueError(f"want at most {MAX_WRITES} writes; got {len(writes)}")
    if any(a[0] > b[0] for a, b in pairwise(writes)):
        raise ValueError("want the writes in the order of their times")
    return "schedule " + ",".join(f"{show(at)}:{show(size)}" for at, size in writes)


_READERS = {"on-off": _on_off, "stall at": _stall, "schedule": _schedule}


def _rewrite(text: str, show: Callable[[Quantity], str]) -> str:
    match = _FORM.fullmatch(" ".join(text.split())) if len(text) <= _LONGEST_TEXT else None
    if match is None or (match[2] is None) != (match[1] == "greedy"):
        raise ValueError("want a pattern")
    return "greedy" if match[2] is None else _READERS[match[1]](match[2], show)


def _in_base_units(value: Quantity) -> str:
    return f"{int(value)}B" if isinstance(value, Bytes) else str(int(value))


def base_units(text: str) -> str:
    """A pattern as tgen takes it: bare nanoseconds, and bytes with a B after them."""
    return _rewrite(text, _in_base_units)


def schedule_of(text: str) -> tuple[int, int] | None:
    """The bytes of a schedule, and when (ns) its last write is; None for another pattern."""
    if not text.startswith("schedule "):
        return None
    rest = base_units(text).partition(" ")[2]
    writes = [item.split(":") for item in rest.split(",")]
    return sum(int(size.removesuffix("B")) for _, size in writes), int(writes[-1][0])


@dataclass(frozen=True)
class Pattern:
    """A value that is a pattern, kept as text with one way to write each."""

    want: str = (
        "greedy, 'on-off 100ms/50ms', 'stall at 20kB for 500ms', 'stall at 1s for 500ms' "
        "or 'schedule 0s:20kB,300ms:10kB'"
    )

    def parse(self, raw: object) -> Value:
        try:
            return _rewrite(raw if isinstance(raw, str) else "", str)
        except ValueError as error:
            why = "" if str(error) == "want a pattern" else f" ({error})"
            raise ValueError(f"want {self.want}; got {raw!r}{why}") from error

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "description": self.want}


SPEC = ParamSpec(
    name="pattern",
    kind="flow",
    role="flow",
    help="When the application writes",
    type=Pattern(),
    default="greedy",
)
