# SPDX-License-Identifier: Apache-2.0
"""The rack of machines as an Ansible inventory, with the commands for their power and their consoles."""

from __future__ import annotations

from pathlib import Path

from simulated_rack.inventory import control_path, write_yaml
from testctl_rack import pki

from machine_rack.plan import PORT, Machine, MachineRack

TOOL = Path(__file__).parents[1] / "rack"


def write(rack: MachineRack) -> Path:
    """inventory/, keys/ and ssh/ of the state directory; returns the inventory."""
    folder = rack.state / "inventory"
    (folder / "group_vars").mkdir(parents=True)
    write_yaml(folder / "hosts.yaml", _hosts(rack))
    write_yaml(folder / "group_vars" / "all.yaml", _all(rack))
    pki.make(rack.state / "keys", [one.name for one in rack.machines])
    ssh = rack.state / "ssh"
    ssh.mkdir(mode=0o700)
    host = (rack.image / "host.pub").read_text(encoding="utf-8")
    known = "".join(f"{one.management} {host}" for one in rack.machines)
    (ssh / "known_hosts").write_text(known, encoding="utf-8")
    return folder


def _hosts(rack: MachineRack) -> dict[str, object]:
    controller = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    ports = {nic.peer.rpartition("-")[0]: nic.device for nic in rack.switch.nics[1:]}
    switch = _reach(rack, rack.switch) | {"testctl_ports": ports, "testctl_backend": "ebpf"}
    return {
        "testctl_controller": {"hosts": {"controller": controller}},
        "testctl_hosts": {"hosts": {one.name: _reach(rack, one) | _host(one) for one in rack.hosts}},
        "testctl_switches": {"hosts": {rack.switch.name: switch}},
    }


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


def _all(rack: MachineRack) -> dict[str, object]:
    ssh = rack.state / "ssh"
    return {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(rack.image / "id"),
        "ansible_ssh_common_args": f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={ssh / 'known_hosts'}",
        "ansible_control_path": str(control_path(rack.state)),
        "ansible_python_interpreter": "/usr/bin/python3",
        "testctl_keys": "../keys",
    }
