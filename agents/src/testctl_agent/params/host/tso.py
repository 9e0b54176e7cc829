# SPDX-License-Identifier: Apache-2.0
"""TSO: whether the stack hands the device segments of up to 64 KB.

On a veth, "on" means that the stack and its qdiscs see 64 KB and the wire sees packets of MTU
size, as with a NIC that has TSO: the veth's own TSO off, so that the kernel splits what leaves
the qdisc, and GSO on.  "off" is a NIC without TSO: GSO off as well.  A veth as the kernel makes
it sends 64 KB across whole, which no wire does; that state reads "whole" and is restored.

A device on which TSO is on for one of IPv4 and IPv6 reads "tx-tcp-segmentation:on,tx-tcp6-segmentation:off", and a
veth that sends segments whole but has no GSO reads that with "gso:off": which apply takes back.
"""

from __future__ import annotations

from testctl_agent.network import ethtool, ethtool_netlink
from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Switch, Value

SPEC = ParamSpec(
    name="tso",
    kind="host",
    help="TCP segmentation offload: the stack sends segments of up to 64 KB, the wire sees packets of MTU size",
    type=Switch(),
)
_WHOLE, _GSO = "whole", "gso"
"""Words in a value that `read` gives."""


def _read(device: str) -> Value:
    state = ethtool.segmentation(device)
    on = next(iter(state.values()), False)
    odd = len(set(state.values())) > 1
    if ethtool.driver(device) == "veth":
        gso = ethtool.feature(device, ethtool.GSO)
        if not odd and (gso or not on):
            return _WHOLE if on else gso
        state, odd = state | {_GSO: gso}, True
    return ",".join(f"{name}:{'on' if is_on else 'off'}" for name, is_on in state.items()) if odd else on


def _apply(device: str, value: Value) -> None:
    veth = ethtool.driver(device) == "veth"
    if isinstance(value, str) and ":" in value:
        state = {name: word == "on" for name, _, word in (part.partition(":") for part in value.split(","))}
        gso = state.pop(_GSO, None)
    else:
        state = dict.fromkeys(ethtool.segmentation(device), value == _WHOLE if veth else bool(value))
        gso = bool(value) if veth else None
    if gso is not None:
        ethtool.set_feature(device, ethtool.GSO, gso)
    ethtool_netlink.set_features(device, state)


def read(entity: Entity, name: str) -> Value:
    return gather(entity, _read)


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, _apply)


def unavailable(entity: Entity, name: str) -> str:
    return unavailable_on(entity)
