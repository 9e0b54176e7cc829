# SPDX-License-Identifier: Apache-2.0
"""How fast an application writes."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Rate

SPEC = ParamSpec(
    name="rate",
    kind="flow",
    role="flow",
    help="Rate at which each connection's application writes; none: as fast as TCP takes it",
    type=Amount(Rate, least=1, most=10**13, none="none"),
    default="none",
)
