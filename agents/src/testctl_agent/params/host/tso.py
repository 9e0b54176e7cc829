# SPDX-License-Identifier: Apache-2.0
"""TSO: whether the stack hands the device segments of up to 64 KB.

On a veth, "on" means that the stack and its qdiscs see 64 KB and the wire sees packets of MTU
size, as with a NIC that has TSO: the veth's own TSO off, so that the kernel splits what leaves
the qdisc, and GSO on.  "off" is a NIC without TSO: GSO off as well.  A veth as the kernel makes
it sends 64 KB across whole, which no wire does; that state reads "whole" and is restored.
"""

from __future__ import annotations

from testctl_agent.params.devices import gather, spread
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPEC = ParamSpec(
    name="tso",
    kind="host",
    help="TCP segmentation offload: the stack sends segments of up to 64 KB, the wire sees packets of MTU size",
    type=Switch(),
)
_WHOLE = "whole"


def _read(device: str) -> Value:
    from testctl_agent import ethtool

    if ethtool.driver(device) != "veth":
        return ethtool.feature(device, "tso")
    gso = ethtool.feature(device, "gso")
    return _WHOLE if gso and ethtool.feature(device, "tso") else gso


def _apply(device: str, value: Value) -> None:
    from testctl_agent import ethtool

    if ethtool.driver(device) != "veth":
        ethtool.set_feature(device, "tso", bool(value))
        return
    ethtool.set_feature(device, "gso", bool(value))
    ethtool.set_feature(device, "tso", value == _WHOLE)


def read(entity: Entity, name: str) -> Value:
    return gather(entity, _read)


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, _apply)


def needs(entity: Entity, name: str) -> str:
    return "" if entity.devices else "it has no network device"
