# SPDX-License-Identifier: Apache-2.0
"""LRO: whether the NIC merges packets that arrive, before the kernel sees them (gro is the kernel's)."""

from __future__ import annotations

from testctl_agent.params.devices import gather, spread
from testctl_agent.params.entity import Entity
from testctl_agent.params.host_nic import lacks
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPEC = ParamSpec(
    name="lro", kind="host", help="The NIC merges packets that arrive (large receive offload)", type=Switch()
)
_FEATURE = "rx-lro"


def read(entity: Entity, name: str) -> Value:
    from testctl_agent.network import ethtool_netlink

    return gather(entity, lambda device: ethtool_netlink.features(device)[_FEATURE].on)


def apply(entity: Entity, name: str, value: Value) -> None:
    from testctl_agent.network import ethtool_netlink

    spread(entity, name, value, lambda device, on: ethtool_netlink.set_feature(device, _FEATURE, bool(on)))


def needs(entity: Entity, name: str) -> str:
    from testctl_agent.network import ethtool_netlink

    for device in entity.devices:
        try:
            found = ethtool_netlink.features(device).get(_FEATURE)
        except TestbedError as error:
            return str(error)
        if found is None or not found.can_change:
            return lacks(device, "large receive offload that can be switched")
    return "" if entity.devices else "it has no network device"
