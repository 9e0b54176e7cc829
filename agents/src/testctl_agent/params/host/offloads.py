# SPDX-License-Identifier: Apache-2.0
"""Whether received packets are merged: by the kernel below its stack (gro; see gro_flush), or by the NIC (lro)."""

from __future__ import annotations

from testctl_agent.network import ethtool, ethtool_netlink
from testctl_agent.params.devices import gather, lacking, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPECS = [
    ParamSpec("gro", "host", "Merge received packets (generic receive offload)", Switch()),
    ParamSpec("lro", "host", "The NIC merges packets that arrive (large receive offload)", Switch()),
]
_FEATURES = {"gro": ethtool.GRO, "lro": ethtool.LRO}


def read(entity: Entity, name: str) -> Value:
    return gather(entity, lambda device: ethtool.feature(device, _FEATURES[name]))


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, lambda device, on: ethtool.set_feature(device, _FEATURES[name], bool(on)))


def unavailable(entity: Entity, name: str) -> str:
    def reason(device: str) -> str:
        lro = ethtool_netlink.features(device).get(ethtool.LRO)
        return "" if lro and lro.can_change else lacking(device, "large receive offload that can be switched")

    return unavailable_on(entity, reason) if name == "lro" else unavailable_on(entity)
