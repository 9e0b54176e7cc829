# SPDX-License-Identifier: Apache-2.0
"""A topology as network namespaces: the text that `ip`, `bridge` and `ethtool` are given.

Each host is a namespace with one device, eth0; each switch one with a device a
neighbour, named like it.  The kernel's bridge br0 holds them where the back end is netem; the
others forward by a program of their own.  Everything that a kernel would choose at random or
learn by itself (MAC addresses, neighbours, forwarding) is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOST_DEVICE = "eth0"
BRIDGE = "br0"
BRIDGED = ("netem",)
"""The back ends that leave forwarding to the kernel's bridge."""
PREFIX = 16
QUEUE_PACKETS = 1000


@dataclass(frozen=True)
class Wiring:
    """What a topology comes down to.

    hosts     name → IPv4 address
    switches  names
    links     pairs of names; a host has exactly one
    """

    hosts: Mapping[str, str]
    switches: Sequence[str]
    links: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, topology: Mapping[str, Any]) -> Wiring:
        """From a topology as JSON has it."""
        return cls(topology["hosts"], topology["switches"], [tuple(link) for link in topology["links"]])

    def neighbours(self, name: str) -> list[str]:
        """Who is at the other end of each link of an entity, in the order of the links."""
        return [b if a == name else a for a, b in self.links if name in (a, b)]

    def ports(self, switch: str) -> dict[str, str]:
        """The ports of a switch: "switch:neighbour" → device."""
        return {f"{switch}:{other}": other for other in self.neighbours(switch)}

    def next_hop(self, switch: str, host: str) -> str:
        """The neighbour of a switch on the way to a host (a topology has no loops)."""
        came_from = {host: host}
        front = [host]
        while switch not in came_from:
            front = [
                self._reach(node, other, came_from)
                for node in front
                for other in self.neighbours(node)
                if other not in came_from
            ]
        return came_from[switch]

    def stations(self, switch: str) -> dict[str, str]:
        """MAC address of every host → the device of the switch it lies behind."""
        return {mac(index): self.next_hop(switch, host) for index, host in enumerate(self.hosts, 1)}

    @staticmethod
    def _reach(node: str, other: str, came_from: dict[str, str]) -> str:
        came_from[other] = node
        return other


def mac(index: int) -> str:
    """The MAC address of the host with this place in the topology (locally administered)."""
    return f"02:00:00:00:{index >> 8:02x}:{index & 255:02x}"


def _device(owner: str, other: str, wiring: Wiring) -> str:
    return HOST_DEVICE if owner in wiring.hosts else other


def links(wiring: Wiring, prefix: str = "") -> str:
    """For `ip -batch`: the namespaces, whose names begin with `prefix`, and a veth pair a link."""
    lines = [f"netns add {prefix}{name}" for name in (*wiring.hosts, *wiring.switches)]
    lines += [
        f"link add {_device(a, b, wiring)} netns {prefix}{a} type veth "
        f"peer name {_device(b, a, wiring)} netns {prefix}{b}"
        for a, b in wiring.links
    ]
    return "\n".join(lines) + "\n"


def host(wiring: Wiring, name: str) -> str:
    """For `ip -n HOST -batch`: addresses, neighbours, everything up."""
    order = list(wiring.hosts)
    lines = [
        "link set lo up",
        f"link set {HOST_DEVICE} address {mac(order.index(name) + 1)}",
        f"address add {wiring.hosts[name]}/{PREFIX} dev {HOST_DEVICE}",
        f"link set {HOST_DEVICE} up",
    ]
    lines += [
        f"neighbour replace {wiring.hosts[other]} lladdr {mac(order.index(other) + 1)} nud permanent dev {HOST_DEVICE}"
        for other in order
        if other != name
    ]
    return "\n".join(lines) + "\n"


def bare_switch(wiring: Wiring, name: str) -> str:
    """For `ip -n SWITCH -batch`: ports that take every frame, for a program to forward."""
    return "".join(f"link set dev {port} promisc on up\n" for port in wiring.neighbours(name))


def switch(wiring: Wiring, name: str) -> str:
    """For `ip -n SWITCH -batch`: the bridge and its ports."""
    lines = [f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0", f"link set {BRIDGE} up"]
    for port in wiring.neighbours(name):
        lines.append(f"link set dev {port} txqueuelen {QUEUE_PACKETS} master {BRIDGE} up")
    return "\n".join(lines) + "\n"


def forwarding(wiring: Wiring, name: str) -> str:
    """For `bridge -n SWITCH -batch`: which port each host lies behind; nothing is flooded or learnt."""
    lines = [f"fdb replace {address} dev {port} master static" for address, port in wiring.stations(name).items()]
    lines += [f"link set dev {port} learning off flood off" for port in wiring.neighbours(name)]
    return "\n".join(lines) + "\n"


def build(wiring: Wiring, backend: str, run: Callable[[Sequence[str], str], str], prefix: str = "") -> None:
    """Make the network for switches with this back end; `run` takes a program's words and its standard input.

    prefix: what the names of the namespaces begin with
    """
    run(["ip", "-batch", "-"], links(wiring, prefix))
    for name in wiring.hosts:
        space = prefix + name
        _quiet(space, run)
        run(["ip", "-n", space, "-batch", "-"], host(wiring, name))
        # A NIC with TSO: the stack hands over up to 64 KB, the wire sees packets.
        run(["ip", "netns", "exec", space, "ethtool", "-K", HOST_DEVICE, "tso", "off", "gso", "on", "gro", "off"], "")
    for name in wiring.switches:
        space = prefix + name
        _quiet(space, run)
        if backend in BRIDGED:
            run(["ip", "-n", space, "-batch", "-"], switch(wiring, name))
            run(["bridge", "-n", space, "-batch", "-"], forwarding(wiring, name))
        else:
            run(["ip", "-n", space, "-batch", "-"], bare_switch(wiring, name))
        for port in wiring.neighbours(name):
            run(["ip", "netns", "exec", space, "ethtool", "-K", port, "tso", "off", "gso", "off", "gro", "off"], "")


def _quiet(space: str, run: Callable[[Sequence[str], str], str]) -> None:
    """No IPv6 in a namespace before its devices are up, so that no router or neighbour is solicited."""
    files = [f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6" for which in ("all", "default")]
    run(["ip", "netns", "exec", space, "tee", *files], "1")
