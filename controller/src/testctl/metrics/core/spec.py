# SPDX-License-Identifier: Apache-2.0
"""What a metric is: pure data about its values, and a pure function."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Number = float | int | str
Better = Literal["higher", "lower", "none"]

NAN = float("nan")


INSTRUMENTS: dict[str, str] = {
    "sender": "a capture at the host that sends the data",
    "receiver": "a capture at the host that receives it",
    "telemetry": "telemetry of every switch on the way",
    "tcp_info": "tcp_info samples of the sender",
    "tcp_events": "the trace of the sender's TCP",
    "counters": "the kernels' own counters of both hosts",
    "requests": "what the applications of a flow that makes requests say of each",
}
"""What a value can be measured by."""

PLAN = "plan"
"""For `needs`: known without any instrument."""


@dataclass(frozen=True)
class MetricInfo:
    """One value that a metric yields: the name that a plan's `expect` uses.  `text`: it is no number.

    needs  the instruments that it is measured by, such as "sender and receiver or telemetry", or "plan"; ""
           for the `needs` of its MetricSpec.  Without them the value is NaN, whatever `compute` says; with any of the
           alternatives it is the same number, or NaN.
    """

    name: str
    unit: str
    help: str
    better: Better = "none"
    text: bool = False
    needs: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"metric {self.name!r}: want a name of small letters, digits and _")
        unknown = {instrument for way in self.alternatives for instrument in way} - INSTRUMENTS.keys()
        if unknown and self.needs:
            known = ", ".join((*INSTRUMENTS, PLAN))
            raise ValueError(
                f"metric {self.name}: needs: want instruments of {known}; got {', '.join(sorted(unknown))}"
            )

    @property
    def alternatives(self) -> tuple[frozenset[str], ...]:
        """Sets of instruments; each is enough."""
        if self.needs == PLAN:
            return (frozenset(),)
        return tuple(frozenset(way.split(" and ")) for way in self.needs.split(" or "))

    @property
    def null(self) -> str:
        """The part of its help that says when it is NaN; "": it says nothing."""
        return "".join(self.help.partition("NaN")[1:])

    def measured_by(self, instruments: frozenset[str]) -> bool:
        """Whether these instruments are enough."""
        return any(way <= instruments for way in self.alternatives)


@dataclass(frozen=True)
class MetricSpec:
    """A metric file: `name` is the file's, `values` all that its `compute` yields.

    scope "flow": compute(records, flow) is called for every flow; "point": once, with flow "*".
    needs: of the values that say nothing themselves.
    """

    name: str
    help: str
    values: tuple[MetricInfo, ...]
    scope: Literal["flow", "point"] = "flow"
    needs: str = ""

    def __post_init__(self) -> None:
        values = tuple(replace(value, needs=value.needs or self.needs) for value in self.values)
        object.__setattr__(self, "values", values)


WIDTHS: dict[str, int] = {
    "1s": 10**9,
    "100ms": 10**8,
    "10ms": 10**7,
    "1ms": 10**6,
    "100us": 10**5,
    "10us": 10**4,
    "1us": 10**3,
}
"""Bin widths that parametric names end in, and their ns."""
