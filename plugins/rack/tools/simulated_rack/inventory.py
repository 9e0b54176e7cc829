# SPDX-License-Identifier: Apache-2.0
"""The simulated rack as an Ansible inventory: what a hardware rack's says, and how SSH reaches the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml
from testctl_rack import pki

from simulated_rack.plan import PORT, Node, SimulatedRack

HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by plugins/rack/tools/rack up; see inventory/rack-example for one of hardware.
"""


def write(rack: SimulatedRack) -> Path:
    """inventory/ and keys/ of the state directory; returns the inventory."""
    folder = rack.state / "inventory"
    (folder / "group_vars").mkdir(parents=True)
    write_yaml(folder / "hosts.yaml", _hosts(rack))
    write_yaml(folder / "group_vars" / "all.yaml", _all(rack))
    pki.make(rack.state / "keys", [node.name for node in rack.nodes])
    return folder


def write_yaml(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(HEAD + yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")


def _hosts(rack: SimulatedRack) -> dict[str, object]:
    ports = {host.name: port for host in rack.hosts for port in host.devices.values()}
    return {
        "testctl_controller": {
            "hosts": {
                "controller": {
                    "ansible_connection": "local",
                    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
                }
            }
        },
        "testctl_hosts": {"hosts": {node.name: _reach(node) | _host(node) for node in rack.hosts}},
        "testctl_switches": {
            "hosts": {rack.switch.name: _reach(rack.switch) | {"testctl_ports": ports, "testctl_backend": "ebpf"}}
        },
    }


def _reach(node: Node) -> dict[str, object]:
    return {"ansible_host": node.management, "testctl_listen": f"{node.management}:{PORT}"}


def _host(node: Node) -> dict[str, object]:
    return {
        "testctl_device": next(iter(node.devices)),
        "testctl_address": node.address.partition("/")[0],
        "testctl_mac": node.mac,
    }


def _all(rack: SimulatedRack) -> dict[str, object]:
    ssh = rack.state / "ssh"
    return {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(ssh / "id"),
        "ansible_ssh_common_args": f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={ssh / 'known_hosts'}",
        "ansible_control_path": str(control_path(rack.state)),
        "ansible_python_interpreter": "/usr/bin/python3",
        "testctl_keys": "../keys",
    }


def control_path(state: Path) -> Path:
    """Where ssh keeps the sockets of its connections, as Ansible wants it written."""
    return state / "ssh" / "%%h"
