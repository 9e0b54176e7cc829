# SPDX-License-Identifier: Apache-2.0
"""The specification of a parameter: pure data that controller and agents share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from testctl_agent.spec.types import Value, ValueType

Kind = Literal["host", "switch", "port", "flow"]
Scope = Literal["entity", "path", "testbed"]
Role = Literal["state", "flow", "collector", "traffic", "testbed"]

ALL_TESTBEDS = frozenset({"lab", "netns", "inventory"})


@dataclass(frozen=True)
class ParamSpec:
    """A parameter of a kind of entity.

    name       the name in a plan, and the name of the file
    kind       the kind of entity that has it; a `port` parameter set on a switch
               is set on each of its ports
    scope      "path": distributed, every entity of a flow's path must have the same
               value; "testbed": every entity of that kind must have the same value
    role       "state" is applied, read back and restored by an agent; "flow" goes to
               the traffic generator; "collector" selects a recording; "traffic" becomes
               hosts and flows before a point is run; "testbed" is the testbed's, before an agent starts
    default    the value if a plan does not set it (None: left as it is)
    after      parameters that are applied before this one when both are set
    pattern    for a family of names such as sysctls: a regular expression of the name
    internal   set by the testbed; a plan that sets it is refused
    example    a value for the documentation, where the type gives none, or none that can stand alone
    beside     further tuples that an example of it needs, as a plan writes them
    """

    name: str
    kind: Kind
    help: str
    type: ValueType
    role: Role = "state"
    scope: Scope = "entity"
    default: Value | None = None
    testbeds: frozenset[str] = ALL_TESTBEDS
    after: tuple[str, ...] = ()
    pattern: str = ""
    internal: bool = False
    example: str = ""
    beside: tuple[str, ...] = ()

    def matches(self, name: str) -> bool:
        """Whether this is the parameter of that name, or its family."""
        return name == self.name or bool(self.pattern and re.fullmatch(self.pattern, name))
