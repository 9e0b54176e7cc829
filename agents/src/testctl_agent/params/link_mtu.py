# SPDX-License-Identifier: Apache-2.0
"""The MTU of an entity's devices, for hosts and switches alike."""

from __future__ import annotations

from testctl_agent.params.devices import gather, spread
from testctl_agent.params.entity import Entity
from testctl_agent.spec.types import Int, Value

TYPE = Int(576, 65535, "bytes")
HELP = "Largest IP packet, the same on every entity of a path"


def read(entity: Entity, name: str) -> Value:
    from testctl_agent import netlink

    return gather(entity, netlink.mtu)


def apply(entity: Entity, name: str, value: Value) -> None:
    from testctl_agent import netlink

    spread(entity, name, value, lambda device, mtu: netlink.set_mtu(device, int(mtu)))


def needs(entity: Entity, name: str) -> str:
    return "" if entity.devices else "it has no network device"
