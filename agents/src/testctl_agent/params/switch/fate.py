# SPDX-License-Identifier: Apache-2.0
"""The fates of a switch: which packets of which flows it drops, marks, or changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testctl_agent.params.switch_back_end import apply, needs, read
from testctl_agent.spec import fate
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value

__all__ = ["SPEC", "Fates", "apply", "needs", "read"]


@dataclass(frozen=True)
class Fates:
    """Text of fates; its value is the canonical text (spec/fate.py has the grammar)."""

    want: str = 'fates such as "drop data 1-4 of bulk, first; lose 1e-5 of bulk seed 3", or none'

    def parse(self, raw: object) -> Value:
        if not isinstance(raw, str):
            raise ValueError(f"want {self.want}; got {raw}")
        return fate.show(fate.parse(raw))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "description": self.want}


SPEC = ParamSpec(
    name="fate",
    kind="switch",
    help=(
        "What becomes of chosen packets, counted on the wire: drop, mark (CE), echo (set ECE) or clear (CE) the data, "
        "acks or bytes of a range (1-4, or 20- to the end), or every n-th, of a flow; what is sent again counts as a "
        "packet of its own, but with ', first' only first transmissions count; lose: drop at a rate"
    ),
    type=Fates(),
    after=("flows",),
)
