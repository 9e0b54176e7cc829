# SPDX-License-Identifier: Apache-2.0
"""The connections that a switch tells apart: set by the testbed, from a plan's flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testctl_agent.params.switch_back_end import apply, needs, read
from testctl_agent.spec import flows
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Value

__all__ = ["SPEC", "Connections", "apply", "needs", "read"]


@dataclass(frozen=True)
class Connections:
    """Text of connections; its value is the canonical text (spec/flows.py has the grammar)."""

    want: str = "NAME/CONNECTION tcp ADDRESS:PORT ADDRESS:PORT; …, or none"

    def parse(self, raw: object) -> Value:
        if not isinstance(raw, str):
            raise ValueError(f"want {self.want}; got {raw}")
        return flows.show(flows.parse(raw))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "description": self.want}


SPEC = ParamSpec(
    name="flows",
    kind="switch",
    help="The connections that the switch tells apart, in the order of their ids",
    type=Connections(),
    internal=True,
)
