# SPDX-License-Identifier: Apache-2.0
"""LRO: whether the NIC merges packets that arrive, before the kernel sees them (gro is the kernel's)."""

from __future__ import annotations

from testctl_agent.network import ethtool, ethtool_netlink
from testctl_agent.params.devices import gather, lacking, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPEC = ParamSpec(
    name="lro", kind="host", help="The NIC merges packets that arrive (large receive offload)", type=Switch()
)
_FEATURE = "rx-lro"


def read(entity: Entity, name: str) -> Value:
    return gather(entity, lambda device: ethtool.feature(device, _FEATURE))


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, lambda device, on: ethtool.set_feature(device, _FEATURE, bool(on)))


def unavailable(entity: Entity, name: str) -> str:
    def reason(device: str) -> str:
        found = ethtool_netlink.features(device).get(_FEATURE)
        return "" if found and found.can_change else lacking(device, "large receive offload that can be switched")

    return unavailable_on(entity, reason)
