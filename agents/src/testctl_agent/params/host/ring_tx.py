# SPDX-License-Identifier: Apache-2.0
"""The send ring of a host's NICs: packets that each of its queues holds."""

from __future__ import annotations

from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int

_SETTING = NicSetting("RINGS", "tx", "send ring")
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="ring_tx",
    kind="host",
    help="Packets in each send ring of the NIC",
    type=Int(1, 1 << 20, "packets"),
    after=("queues",),
)
