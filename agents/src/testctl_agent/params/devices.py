# SPDX-License-Identifier: Apache-2.0
"""One value for all devices of an entity, without forgetting what each of them had.

When devices differ, the value read is "eth0=1500 eth1=9000", which `spread` takes back: no plan
can ask for it, but a restore needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from testctl_agent.network import ethtool
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.types import Value, shown

CARRIER_S = 15.0
"""How long a link may take to come up again after its device was set: drivers of NICs take it down for that."""
LOOK_S = 0.05


def gather(entity: Entity, read: Callable[[str], Value]) -> Value:
    """The value that every device has, or all values if they differ."""
    values = {device: read(device) for device in (entity.devices or (entity.device,))}
    first = next(iter(values.values()))
    if all(value == first for value in values.values()):
        return first
    return " ".join(f"{device}={shown(value)}" for device, value in values.items())


def spread(entity: Entity, parameter: str, value: Value, apply: Callable[[str, Value], None]) -> None:
    """Set `value` on every device.  Raises ApplyError that names the device."""
    each = dict.fromkeys(entity.devices or (entity.device,), value)
    if isinstance(value, str) and "=" in value:
        each = {device: _value(text) for device, _, text in (word.partition("=") for word in value.split())}
    for device, wanted in each.items():
        linked = _carrier(entity, device)
        try:
            apply(device, wanted)
            if linked:
                _await_carrier(entity, device)
        except ApplyError:
            raise
        except (TestbedError, OSError) as error:
            raise entity.refuse(parameter, f"{shown(wanted)} on {device}", error) from error


def _carrier(entity: Entity, device: str) -> bool:
    """Whether a device is up and has a link."""
    try:
        return (entity.sys / "class/net" / device / "carrier").read_text(encoding="ascii").strip() == "1"
    except OSError:  # there is none while the device is down
        return False


def _await_carrier(entity: Entity, device: str) -> None:
    """Wait for the link of a device whose driver has begun anew: packets are lost until it has negotiated it."""
    until = time.monotonic() + CARRIER_S
    while not _carrier(entity, device):
        if time.monotonic() > until:
            raise TestbedError(f"its link was up, and is not up again within {CARRIER_S:g} s")
        time.sleep(LOOK_S)


def unavailable_on(entity: Entity, reason: Callable[[str], str] = lambda device: "") -> str:
    """Why a parameter of devices can't be set here: the first device's `reason` or error; "" when it can."""
    for device in entity.devices:
        try:
            why = reason(device)
        except TestbedError as error:
            return str(error)
        if why:
            return why
    return "" if entity.devices else "it has no network device"


def lacking(device: str, what: str) -> str:
    """The reason for a device that does not have something: "device eth1 (veth) has no rings"."""
    try:
        named = f"{device} ({ethtool.driver(device)})"
    except TestbedError:  # lo has no driver
        named = device
    return f"device {named} has no {what}"


def _value(text: str) -> Value:
    if text in ("on", "off"):
        return text == "on"
    return int(text) if text.isascii() and text.isdigit() else text
