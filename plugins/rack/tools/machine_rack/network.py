# SPDX-License-Identifier: Apache-2.0
"""The management network of a rack of machines: a bridge with the controller's address, and a tap for each machine."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from simulated_rack import network as simulated
from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError

from machine_rack.plan import BRIDGE, PREFIX, Machine, MachineRack

_ALIAS_CHARACTERS = 255
NTP = 123


def refuse(rack: MachineRack) -> None:
    """TestbedError where a rack of machines is up already, or its network or port is another's."""
    if there := devices():
        of = f" --state {state}" if (state := belongs_to()) else ""
        raise TestbedError(
            f"rack: want no rack of machines here; got {', '.join(there)} (plugins/rack/tools/rack down{of})"
        )
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise TestbedError("rack: want /dev/net/tun, for the machines' management network; got none (modprobe tun)")
    simulated.refuse_reached(rack.management)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            # Not SO_REUSEADDR: a server on all addresses would answer in place of the rack's.
            one.bind(("0.0.0.0", NTP))
        except OSError as error:
            raise TestbedError(
                f"rack: want UDP port {NTP} free for the time server of the machines; got: {error.strerror} (another "
                "has it: ss -ulpn)"
            ) from error


def up(rack: MachineRack) -> None:
    """Make all; TestbedError for what can't be made."""
    run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "link", "set", BRIDGE, "alias", str(rack.state)[:_ALIAS_CHARACTERS]])
    _quiet(BRIDGE)
    run(["ip", "addr", "add", f"{rack.controller}/{rack.management.prefixlen}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    for machine in rack.machines:
        run(["ip", "tuntap", "add", machine.tap, "mode", "tap"])
        _quiet(machine.tap)
        run(["ip", "link", "set", machine.tap, "master", BRIDGE, "up"])


def _quiet(device: str) -> None:
    """No IPv6 on the controller's side."""
    with suppress(OSError):
        Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6").write_text("1", encoding="ascii")


def plug(machine: Machine, up: bool) -> None:
    """A machine's cable in the management network."""
    run(["ip", "link", "set", machine.tap, "up" if up else "down"])


def down() -> None:
    """Remove every device of a rack; those that are gone already are no error."""
    for name in devices():
        with suppress(TestbedError):
            run(["ip", "link", "del", name])


def belongs_to() -> Path | None:
    """The directory of the rack that is up, as its bridge says; None where there is none."""
    return simulated.belongs_to(BRIDGE)


def devices() -> list[str]:
    """The rack's devices on this machine."""
    return simulated.devices(PREFIX)
