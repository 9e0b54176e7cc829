# SPDX-License-Identifier: Apache-2.0
"""The MTU of an entity's devices, for hosts and switches alike.

`lasting` looks for side effects that the kernel does not undo with the MTU: below 1280 bytes it removes IPv6 from the
device; it sets IPv6's own MTU of the device and of its routes; it lowers the MTU of devices on top of it.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from testctl_agent.network import netlink as nl
from testctl_agent.network import qdisc, routes
from testctl_agent.params.devices import gather, spread, unavailable_on
from testctl_agent.params.entity import Entity
from testctl_agent.spec.types import Int, Value

TYPE = Int(576, 65535, "bytes")
IPV6_MIN = 1280
"""IPV6_MIN_MTU, RFC 8200 section 5."""
_RTAX_LOCK, _RTAX_MTU = 1, 2
HELP = "Largest IP packet, the same on every entity of a path"


def read(entity: Entity, name: str) -> Value:
    return gather(entity, nl.mtu)


def apply(entity: Entity, name: str, value: Value) -> None:
    def apply_device(device: str, mtu: Value) -> None:
        before = nl.mtu(device)
        nl.set_mtu(device, int(mtu))
        qdisc.default_follows(device, before)

    spread(entity, name, value, apply_device)


def unavailable(entity: Entity, name: str) -> str:
    return unavailable_on(entity)


def lasting(entity: Entity, name: str, value: Value) -> str:
    """Why the MTU can't be brought back with all that changes with it; "" when it can."""
    for device in entity.devices:
        if nl.mtu(device) != value and (reason := _lasting(entity, device, int(value))):
            return reason
    return ""


def _lasting(entity: Entity, device: str, wanted: int) -> str:
    now = nl.mtu(device)
    for upper in sorted((entity.sys / "class/net" / device).glob("upper_*")):
        name = upper.name.removeprefix("upper_")
        is_bridge = (upper / "bridge").is_dir()  # its MTU is raised again, too
        if not is_bridge and (mtu := nl.mtu(name)) > wanted:
            return f"{name} lies on {device} and has {mtu}, which the kernel would lower for good"
    own = _number(entity.proc / f"sys/net/ipv6/conf/{device}/mtu")
    if own is None:
        return ""
    if wanted < IPV6_MIN and not _has_ipv6_defaults(entity, device):
        return f"{device} has IPv6, which the kernel removes below {IPV6_MIN}, with its addresses, routes and settings"
    if own != now and wanted >= IPV6_MIN:
        return f"net.ipv6.conf.{device}.mtu is {own}, not the device's {now}, and the kernel would replace it"
    if routes := _ipv6_routes_with_mtu(device):
        return f"{routes} IPv6 routes through {device} have an MTU of their own, which the kernel would replace"
    return ""


def _has_ipv6_defaults(entity: Entity, device: str) -> bool:
    """Whether IPv6 comes back on the device as it is now: disabled, with the default settings, without routes."""
    conf = entity.proc / "sys/net/ipv6/conf"
    off = [_number(conf / name / "disable_ipv6") for name in (device, "default")]
    names = [path.name for path in (conf / device).iterdir() if path.name not in ("mtu", "stable_secret")]
    same = all((conf / device / name).read_text() == (conf / "default" / name).read_text() for name in names)
    return off == [1, 1] and same and not routes.through([device], socket.AF_INET6)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return None


def _ipv6_routes_with_mtu(device: str) -> int:
    """How many IPv6 routes through the device have an MTU that is not locked."""
    count = 0
    for route in routes.through([device], socket.AF_INET6):
        locked = struct.unpack("=I", route.metrics.get(_RTAX_LOCK, bytes(4)))[0] >> _RTAX_MTU & 1
        count += _RTAX_MTU in route.metrics and not locked and not route.cloned
    return count
