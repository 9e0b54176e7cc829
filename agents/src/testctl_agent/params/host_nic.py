# SPDX-License-Identifier: Apache-2.0
"""Settings of a host's NICs that ethtool reads and writes as numbers: what the one-line files share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testctl_agent.params.devices import gather, spread
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value


def lacks(device: str, what: str) -> str:
    """The words of `needs` for a device that has not got something: "device eth1 (veth) has no rings"."""
    from testctl_agent.network import ethtool

    try:
        shown = f"{device} ({ethtool.driver(device)})"
    except TestbedError:  # lo has no driver
        shown = device
    return f"device {shown} has no {what}"


@dataclass(frozen=True)
class NicSetting:
    """One value of a group of ethtool_netlink.

    group  its name there ("RINGS")
    field  the value's name in the group
    what   what the device lacks that has the group without this value
    scale  base units in one of the kernel's; 0: it is on or off
    """

    group: str
    field: str
    what: str
    scale: int = 1

    def _all(self, device: str) -> dict[str, int]:
        from testctl_agent.network import ethtool_netlink

        return ethtool_netlink.get(device, getattr(ethtool_netlink, self.group))

    def _read(self, device: str) -> Value:
        found = self._all(device)
        if self.field not in found:
            raise TestbedError(f"device {device} has no {self.what}")
        return found[self.field] * self.scale if self.scale else bool(found[self.field])

    def _apply(self, device: str, value: Value) -> None:
        from testctl_agent.network import ethtool_netlink

        number = int(value) // self.scale if self.scale else int(bool(value))
        ethtool_netlink.put(device, getattr(ethtool_netlink, self.group), {self.field: number})

    def read(self, entity: Entity, name: str) -> Value:
        return gather(entity, self._read)

    def apply(self, entity: Entity, name: str, value: Value) -> None:
        spread(entity, name, value, self._apply)

    def needs(self, entity: Entity, name: str) -> str:
        from testctl_agent.network import ethtool_netlink

        for device in entity.devices:
            try:
                found: Mapping[str, int] = self._all(device)
            except TestbedError as error:
                return str(error)
            if self.field not in found:
                group = getattr(ethtool_netlink, self.group).name
                return lacks(device, self.what if found else group)
        return "" if entity.devices else "it has no network device"
