# SPDX-License-Identifier: Apache-2.0
"""Settings of a device's hardware, as text: rings, queues, interrupt coalescing, pause frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from testctl_agent.network import ethtool_netlink as nic

_ADAPTS = {"adaptive_rx": ("rx_usecs", "rx_frames"), "adaptive_tx": ("tx_usecs", "tx_frames")}
"""What the device changes by itself while that is on."""


def shown(values: Mapping[str, int]) -> str:
    """Values in the order of their names, without what the device changes by itself."""
    moving = {name for adaptive, names in _ADAPTS.items() if values.get(adaptive) for name in names}
    return " ".join(f"{name}:{value}" for name, value in sorted(values.items()) if name not in moving) or "none"


def _reader(group: nic.Group) -> Callable[[str], str]:
    return lambda device: shown(nic.get(device, group))


READERS: Mapping[str, Callable[[str], str]] = {
    "coalescing": _reader(nic.COALESCE),
    "pause": _reader(nic.PAUSE),
    "queues": _reader(nic.CHANNELS),
    "rings": _reader(nic.RINGS),
}
