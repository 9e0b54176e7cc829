# SPDX-License-Identifier: Apache-2.0
"""How many queues a host's NICs have, each way: combined ones, or as many for receiving as for sending.

A device on which the two differ reads "rx:2,tx:4", which apply takes back.
"""

from __future__ import annotations

from testctl_agent.network import ethtool_netlink as nic
from testctl_agent.params.devices import gather, lacking, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int, Value

SPEC = ParamSpec(
    name="queues",
    kind="host",
    help="Queues of the NIC, for receiving as for sending",
    type=Int(1, 4096, "queues"),
)


def value_of(channels: dict[str, int]) -> Value | None:
    """The value in an answer of the device; None when it has none that can be set."""
    if "combined" in channels:
        return channels["combined"]
    if "rx" not in channels or "tx" not in channels:
        return None
    rx, tx = channels["rx"], channels["tx"]
    return rx if rx == tx else f"rx:{rx},tx:{tx}"


def channels_for(channels: dict[str, int], value: Value) -> dict[str, int]:
    """What to set for a value, given what the device has.  ValueError for one that it can't have."""
    if isinstance(value, str) and ":" in value:
        return {name: int(number) for name, _, number in (word.partition(":") for word in value.split(","))}
    return {"combined": int(value)} if "combined" in channels else {"rx": int(value), "tx": int(value)}


def _read(device: str) -> Value:
    value = value_of(nic.get(device, nic.CHANNELS))
    if value is None:
        raise TestbedError(f"device {device} has no queues that can be set")
    return value


def _apply(device: str, value: Value) -> None:
    nic.put(device, nic.CHANNELS, channels_for(nic.get(device, nic.CHANNELS), value))


def read(entity: Entity, name: str) -> Value:
    return gather(entity, _read)


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, _apply)


def unavailable(entity: Entity, name: str) -> str:
    def reason(device: str) -> str:
        known = value_of(nic.get(device, nic.CHANNELS)) is not None
        return "" if known else lacking(device, "queues that can be set")

    return unavailable_on(entity, reason)


def lasting(entity: Entity, name: str, value: Value) -> str:
    """Why fewer queues can't be brought back as they were: those that go forget which processors they have."""
    for device in entity.devices:
        now = nic.get(device, nic.CHANNELS)
        left = max(channels_for(now, value).values(), default=0)
        for path in sorted((entity.sys / "class/net" / device).glob("queues/rx-*/rps_*")):
            number = int(path.parent.name.removeprefix("rx-"))
            if number >= left and path.read_text().strip(" ,0\n"):
                return f"queue {number} of {device} has {path.name} {path.read_text().strip()}, which goes with it"
    return ""
