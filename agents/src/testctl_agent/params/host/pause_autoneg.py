# SPDX-License-Identifier: Apache-2.0
"""Whether pause frames are negotiated with the peer; then pause_rx and pause_tx are what is offered."""

from __future__ import annotations

from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

_SETTING = NicSetting("PAUSE", "autoneg", "pause frames", scale=0)
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="pause_autoneg",
    kind="host",
    help="Pause frames are negotiated with the peer, pause_rx and pause_tx being the offer",
    type=Switch(),
)
