# SPDX-License-Identifier: Apache-2.0
"""How long a NIC waits after packets arrived before it interrupts."""

from __future__ import annotations

from testctl_agent.params.flow._steps import InSteps
from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.units import Duration

_SETTING = NicSetting("COALESCE", "rx_usecs", "receive coalescing by time", scale=1000)
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="coalesce_rx",
    kind="host",
    help="Time from the first of the packets that arrived to the NIC's interrupt",
    type=InSteps(Duration, most=10**9, step=1000),
    after=("queues", "coalesce_adaptive_rx"),
)
