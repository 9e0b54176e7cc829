# SPDX-License-Identifier: Apache-2.0
"""For scripts that run inside a lab: hosts as namespaces, and a parameter set and read back."""

from __future__ import annotations

import subprocess

from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.spec.types import Value
from testctl_agent.system.namespace import NAMED, join


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True)


def enter(name: str) -> None:
    """This process is in that namespace from here on."""
    join(NAMED / name)


def add(*names: str) -> None:
    """Namespaces without IPv6, which would send packets of its own."""
    for name in names:
        ip(f"netns add {name}")
        ip(f"netns exec {name} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def number_ends(*ends: tuple[str, str]) -> None:
    """The two ends of a wire, (namespace, device): 10.0.0.1 and 10.0.0.2, which know each other."""
    for number, (name, device) in enumerate(ends, 1):
        ip(f"-n {name} link set lo up")
        ip(f"-n {name} link set {device} address {mac(number)}")
        ip(f"-n {name} addr add 10.0.0.{number}/16 dev {device}")
        ip(f"-n {name} link set {device} up")
        ip(f"-n {name} neigh replace 10.0.0.{3 - number} lladdr {mac(3 - number)} dev {device}")


def two_hosts() -> None:
    """`near` and `far`, with one wire between their devices eth0."""
    add("near", "far")
    ip("-n near link add eth0 type veth peer name eth0 netns far")
    number_ends(("near", "eth0"), ("far", "eth0"))


def put(entity: Entity, name: str, value: Value) -> None:
    found = registry.module(entity.kind, name)
    assert found.unavailable(entity, name) == "", found.unavailable(entity, name)
    found.apply(entity, name, value)
    got = found.read(entity, name)
    assert got == value, f"{name}: want {value}; got {got}"
