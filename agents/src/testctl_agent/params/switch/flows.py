# SPDX-License-Identifier: Apache-2.0
"""The connections that a switch tells apart: set by the testbed, from a plan's flows."""

from __future__ import annotations

from testctl_agent.params.switch_backend import apply, read, unavailable
from testctl_agent.params.types import Grammar
from testctl_agent.spec import flows
from testctl_agent.spec.param import ParamSpec

__all__ = ["SPEC", "apply", "read", "unavailable"]

SPEC = ParamSpec(
    name="flows",
    kind="switch",
    help="The connections that the switch tells apart, in the order of their ids",
    type=Grammar(
        "NAME/CONNECTION tcp ADDRESS:PORT ADDRESS:PORT; …, or none", lambda text: flows.show(flows.parse(text))
    ),
    internal=True,
)
