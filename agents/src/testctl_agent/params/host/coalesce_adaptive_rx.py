# SPDX-License-Identifier: Apache-2.0
"""Whether a NIC's driver chooses coalesce_rx itself, by its load."""

from __future__ import annotations

from testctl_agent.params.host_nic import NicSetting
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch

_SETTING = NicSetting("COALESCE", "adaptive_rx", "adaptive receive coalescing", scale=0)
read, apply, needs = _SETTING.read, _SETTING.apply, _SETTING.needs

SPEC = ParamSpec(
    name="coalesce_adaptive_rx",
    kind="host",
    help="The driver chooses coalesce_rx by itself; off: it stays as it is set",
    type=Switch(),
    after=("queues",),
)
