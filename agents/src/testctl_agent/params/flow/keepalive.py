# SPDX-License-Identifier: Apache-2.0
"""Probes of a connection on which nothing moves."""

from __future__ import annotations

from testctl_agent.params.flow._steps import InSteps
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.units import Duration

SPEC = ParamSpec(
    name="keepalive",
    kind="flow",
    role="flow",
    help="Idle time before, and time between, keepalive probes (TCP_KEEPIDLE, TCP_KEEPINTVL); off: none",
    type=InSteps(Duration, least=10**9, most=32767 * 10**9, none="off", step=10**9),
    default="off",
)
