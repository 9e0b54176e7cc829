# SPDX-License-Identifier: Apache-2.0
"""The rack of machines as an Ansible inventory, with the commands for their power and their consoles."""

from __future__ import annotations

from pathlib import Path

from simulated_rack.inventory import lay_out

from machine_rack.plan import PORT, Machine, MachineRack

TOOL = Path(__file__).parents[1] / "rack"


def write(rack: MachineRack) -> Path:
    """inventory/, keys/ and ssh/ of the state directory; returns the inventory."""
    ports = {nic.peer.rpartition("-")[0]: nic.device for nic in rack.switch.nics[1:]}
    hosts = {one.name: _reach(rack, one) | _host(one) for one in rack.hosts}
    folder = lay_out(rack.state, hosts, rack.switch.name, _reach(rack, rack.switch), ports, rack.image / "id")
    ssh = rack.state / "ssh"
    ssh.mkdir(mode=0o700)
    host = (rack.image / "host.pub").read_text(encoding="utf-8")
    known = "".join(f"{one.management} {host}" for one in rack.machines)
    (ssh / "known_hosts").write_text(known, encoding="utf-8")
    return folder


def _reach(rack: MachineRack, machine: Machine) -> dict[str, object]:
    def command(*words: str) -> str:
        return " ".join([str(TOOL), *words, machine.name, "--state", str(rack.state)])

    return {
        "ansible_host": machine.management,
        "testctl_listen": f"{machine.management}:{PORT}",
        "testctl_power_on": command("on"),
        "testctl_power_off": command("off"),
        "testctl_power_cycle": command("cycle"),
        "testctl_console": command("console"),
    }


def _host(machine: Machine) -> dict[str, object]:
    nic = machine.test
    return {"testctl_device": nic.device, "testctl_address": nic.address.partition("/")[0], "testctl_mac": nic.mac}
