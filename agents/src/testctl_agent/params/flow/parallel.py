# SPDX-License-Identifier: Apache-2.0
"""How many connections a flow has."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int

SPEC = ParamSpec(
    name="parallel",
    kind="flow",
    role="flow",
    help="Connections of the flow, each with its own client port",
    type=Int(1, 64),
    default=1,
)
