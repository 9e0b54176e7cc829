# SPDX-License-Identifier: Apache-2.0
"""The simulated rack as an Ansible inventory: what a hardware rack's says, and how SSH reaches the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from testctl_rack import pki

from simulated_rack.plan import PORT, Node, SimulatedRack

Variables = Mapping[str, Mapping[str, object]]
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by plugins/rack/tools/rack up; see inventory/rack-example for one of hardware.
"""


def write(rack: SimulatedRack) -> Path:
    """inventory/ and keys/ of the state directory; returns the inventory."""
    ports = {host.name: port for host in rack.hosts for port in host.devices.values()}
    hosts = {node.name: _reach(node) | _host(node) for node in rack.hosts}
    return lay_out(rack.state, hosts, rack.switch.name, _reach(rack.switch), ports, rack.state / "ssh" / "id")


def lay_out(
    state: Path, hosts: Variables, switch: str, reach: Mapping[str, object], ports: Mapping[str, str], key: Path
) -> Path:
    """The inventory, and keys/, of a rack in its state directory.

    hosts  variables by name; of the switch how it is reached, and the port to each host
    key    of SSH
    """
    folder = state / "inventory"
    (folder / "group_vars").mkdir(parents=True)
    controller = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    _write(folder / "hosts.yaml", {
        "testctl_controller": {"hosts": {"controller": controller}},
        "testctl_hosts": {"hosts": hosts},
        "testctl_switches": {"hosts": {switch: {**reach, "testctl_ports": ports, "testctl_backend": "ebpf"}}},
    })  # fmt: skip
    known = state / "ssh" / "known_hosts"
    _write(folder / "group_vars" / "all.yaml", {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_common_args": f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={known}",
        "ansible_control_path": str(control_path(state)),
        "ansible_python_interpreter": "/usr/bin/python3",
        "testctl_keys": "../keys",
    })  # fmt: skip
    pki.make(state / "keys", [*hosts, switch])
    return folder


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(HEAD + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _reach(node: Node) -> dict[str, object]:
    return {"ansible_host": node.management, "testctl_listen": f"{node.management}:{PORT}"}


def _host(node: Node) -> dict[str, object]:
    return {
        "testctl_device": next(iter(node.devices)),
        "testctl_address": node.address.partition("/")[0],
        "testctl_mac": node.mac,
    }


def control_path(state: Path) -> Path:
    """Where ssh keeps the sockets of its connections, as Ansible wants it written."""
    return state / "ssh" / "%%h"
