# SPDX-License-Identifier: Apache-2.0
"""When a flow starts."""

from __future__ import annotations

from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Amount
from testctl_agent.spec.units import Duration

SPEC = ParamSpec(
    name="start",
    kind="flow",
    role="flow",
    help="When the flow connects, counted from the start of the point's traffic",
    type=Amount(Duration, most=10**15),
    default=Duration(0),
)
