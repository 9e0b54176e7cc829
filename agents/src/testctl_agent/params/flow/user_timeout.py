# SPDX-License-Identifier: Apache-2.0
"""How long sent data may stay unacknowledged before the connection is given up."""

from __future__ import annotations

from testctl_agent.params.flow._steps import InSteps
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.units import Duration

SPEC = ParamSpec(
    name="user_timeout",
    kind="flow",
    role="flow",
    help="How long data may stay unacknowledged before the connection fails (TCP_USER_TIMEOUT); off: the kernel's",
    type=InSteps(Duration, least=10**6, most=2 * 10**15, none="off", step=10**6),
    default="off",
)
