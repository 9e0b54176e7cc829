# SPDX-License-Identifier: Apache-2.0
"""Settings of a host's NICs that ethtool reads and writes as numbers: rings, interrupt coalescing, pause frames.

Pause frames: IEEE 802.3x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from testctl_agent.network import ethtool_netlink as nic
from testctl_agent.params.devices import gather, lacking, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.params.types import InSteps
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.param import ParamSpec
from testctl_agent.spec.types import Int, Switch, Value
from testctl_agent.spec.units import Duration


@dataclass(frozen=True)
class Setting:
    """One value of a group of ethtool_netlink.

    field  the value's name in the group
    what   what the device lacks that has the group without this value
    scale  base units in one of the kernel's; 0: it is on or off
    """

    group: nic.Group
    field: str
    what: str
    scale: int = 1

    def read(self, device: str) -> Value:
        values = nic.get(device, self.group)
        if self.field not in values:
            raise TestbedError(f"device {device} has no {self.what}")
        return values[self.field] * self.scale if self.scale else bool(values[self.field])

    def apply(self, device: str, value: Value) -> None:
        number = int(value) // self.scale if self.scale else int(bool(value))
        nic.put(device, self.group, {self.field: number})

    def unavailable(self, device: str) -> str:
        values = nic.get(device, self.group)
        return "" if self.field in values else lacking(device, self.what if values else self.group.name)


_spec = partial(ParamSpec, kind="host")

_MICROSECONDS = InSteps(Duration, most=10**9, step=1000)
_PACKETS = Int(0, 1 << 20, "packets")
_RING = Int(1, 1 << 20, "packets")
_RX, _TX = ("queues", "coalesce_adaptive_rx"), ("queues", "coalesce_adaptive_tx")

SPECS = [
    _spec(
        name="coalesce_adaptive_rx",
        help="The driver chooses coalesce_rx by itself; off: it stays as it is set",
        type=Switch(),
        after=("queues",),
    ),
    _spec(
        name="coalesce_adaptive_tx",
        help="The driver chooses coalesce_tx by itself; off: it stays as it is set",
        type=Switch(),
        after=("queues",),
    ),
    _spec(
        name="coalesce_rx",
        help="Time from the first of the packets that arrived to the NIC's interrupt",
        type=_MICROSECONDS,
        after=_RX,
    ),
    _spec(name="coalesce_rx_frames", help="Packets that arrived until the NIC interrupts", type=_PACKETS, after=_RX),
    _spec(
        name="coalesce_tx",
        help="Time from the first of the packets that were sent to the NIC's interrupt",
        type=_MICROSECONDS,
        after=_TX,
    ),
    _spec(name="coalesce_tx_frames", help="Packets that were sent until the NIC interrupts", type=_PACKETS, after=_TX),
    _spec(
        name="pause_autoneg",
        help="Pause frames are negotiated with the peer, pause_rx and pause_tx being the offer",
        type=Switch(),
    ),
    _spec(
        name="pause_rx",
        help="The NIC stops sending when its peer asks (pause frames)",
        type=Switch(),
        after=("pause_autoneg",),
    ),
    _spec(
        name="pause_tx",
        help="The NIC asks its peer to stop when its ring is full (pause frames)",
        type=Switch(),
        after=("pause_autoneg",),
    ),
    _spec(name="ring_rx", help="Packets in each receive ring of the NIC", type=_RING, after=("queues",)),
    _spec(name="ring_tx", help="Packets in each send ring of the NIC", type=_RING, after=("queues",)),
]
_SETTINGS = {
    "coalesce_adaptive_rx": Setting(nic.COALESCE, "adaptive_rx", "adaptive receive coalescing", scale=0),
    "coalesce_adaptive_tx": Setting(nic.COALESCE, "adaptive_tx", "adaptive send coalescing", scale=0),
    "coalesce_rx": Setting(nic.COALESCE, "rx_usecs", "receive coalescing by time", scale=1000),
    "coalesce_rx_frames": Setting(nic.COALESCE, "rx_frames", "receive coalescing by packets"),
    "coalesce_tx": Setting(nic.COALESCE, "tx_usecs", "send coalescing by time", scale=1000),
    "coalesce_tx_frames": Setting(nic.COALESCE, "tx_frames", "send coalescing by packets"),
    "pause_autoneg": Setting(nic.PAUSE, "autoneg", "pause frames", scale=0),
    "pause_rx": Setting(nic.PAUSE, "rx", "pause frames", scale=0),
    "pause_tx": Setting(nic.PAUSE, "tx", "pause frames", scale=0),
    "ring_rx": Setting(nic.RINGS, "rx", "receive ring"),
    "ring_tx": Setting(nic.RINGS, "tx", "send ring"),
}


def read(entity: Entity, name: str) -> Value:
    return gather(entity, _SETTINGS[name].read)


def apply(entity: Entity, name: str, value: Value) -> None:
    spread(entity, name, value, _SETTINGS[name].apply)


def unavailable(entity: Entity, name: str) -> str:
    return unavailable_on(entity, _SETTINGS[name].unavailable)
