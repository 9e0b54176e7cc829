# SPDX-License-Identifier: Apache-2.0
"""How many packets were sent before a NIC interrupts, however short the time."""

from __future__ import annotations

from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int

_SETTING = NicSetting("COALESCE", "tx_frames", "send coalescing by packets")
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="coalesce_tx_frames",
    kind="host",
    help="Packets that were sent until the NIC interrupts",
    type=Int(0, 1 << 20, "packets"),
    after=("queues", "coalesce_adaptive_tx"),
)
