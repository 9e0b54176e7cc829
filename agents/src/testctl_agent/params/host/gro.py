# SPDX-License-Identifier: Apache-2.0
"""GRO: whether packets that arrive are merged before the stack sees them (see gro_flush)."""

from __future__ import annotations

from testctl_agent.network import ethtool
from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPEC = ParamSpec(name="gro", kind="host", help="Merge received packets (generic receive offload)", type=Switch())


def read(entity: Entity, name: str) -> Value:
    return gather(entity, lambda device: ethtool.feature(device, ethtool.GRO))


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, lambda device, on: ethtool.set_feature(device, ethtool.GRO, bool(on)))


def unavailable(entity: Entity, name: str) -> str:
    return unavailable_on(entity)
