# SPDX-License-Identifier: Apache-2.0
"""Whether a NIC stops sending when its peer asks it to (IEEE 802.3x)."""

from __future__ import annotations

from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

_SETTING = NicSetting("PAUSE", "rx", "pause frames", scale=0)
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="pause_rx",
    kind="host",
    help="The NIC stops sending when its peer asks (pause frames)",
    type=Switch(),
    after=("pause_autoneg",),
)
