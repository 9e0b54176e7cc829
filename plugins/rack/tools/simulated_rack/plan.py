# SPDX-License-Identifier: Apache-2.0
"""What a simulated rack consists of, by number of hosts: names, addresses, devices.  Changes nothing on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from testctl_agent.spec.errors import PlanError

NAMES = (
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi",
    "omicron", "pi",
)  # fmt: skip
SWITCH = "s1"
BRIDGE = "rack-mgmt"
MANAGEMENT = "198.51.100.0/24"
PREFIX = "rack-"
"""Of each namespace and each device on the machine's side: what begins so is the rack's."""
PORT = 7400


@dataclass(frozen=True)
class Node:
    """One host or the switch: a network namespace, and directories of its own.

    devices   its devices in the test network, with the peer of each: host: {"eth1": "p1"}; switch: {}
    address   in the test network, with its prefix length; "" for a switch
    """

    name: str
    kind: str
    management: str
    devices: dict[str, str]
    address: str = ""
    mac: str = ""

    @property
    def namespace(self) -> str:
        return PREFIX + self.name


@dataclass(frozen=True)
class SimulatedRack:
    """All nodes, and the directory with all that belongs to the rack."""

    state: Path
    management: IPv4Network
    hosts: tuple[Node, ...]
    switch: Node

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.hosts, self.switch)

    def node_dir(self, node: Node) -> Path:
        return self.state / "nodes" / node.name


def network_of(hosts: int, management: str, example: str) -> IPv4Network:
    """The management network of a rack of so many hosts.  Raises PlanError."""
    if not 2 <= hosts <= len(NAMES):
        raise PlanError(f"rack: want 2 to {len(NAMES)} hosts; got {hosts}")
    try:
        network = IPv4Network(management)
    except ValueError as error:
        raise PlanError(f"rack: want --management such as {example}; got {management}") from error
    if network.prefixlen > 27:
        raise PlanError(f"rack: want --management of at least 32 addresses; got {management}")
    return network


def plan(state: Path, hosts: int, management: str = MANAGEMENT) -> SimulatedRack:
    """A rack of so many hosts around one switch, on a management network of its own.  Raises PlanError."""
    network = network_of(hosts, management, MANAGEMENT)
    nodes = tuple(
        Node(name, "host", str(network[10 + number]), {"eth1": f"p{number}"}, f"10.20.0.{number}/16",
             f"02:00:00:00:00:{number:02x}")
        for number, name in enumerate(NAMES[:hosts], 1)
    )  # fmt: skip
    return SimulatedRack(state, network, nodes, Node(SWITCH, "switch", str(network[10]), {}))
