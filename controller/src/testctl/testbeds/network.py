# SPDX-License-Identifier: Apache-2.0
"""A topology as network namespaces: the text that `ip`, `bridge` and `ethtool` are given.

Each host is a namespace with one device, eth0; each switch one with a device a
neighbour, named like it.  The kernel's bridge br0 holds them where the back end is netem; the
others forward by a program of their own.  Everything that a kernel would choose at random or
learn by itself (MAC addresses, neighbours, forwarding) is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from testctl_agent.params.flow.command import GENERATOR as COMMAND
from testctl_agent.spec import fate
from testctl_agent.spec.ecmp import BROADCAST

from testctl.core.point import PointSpec
from testctl.core.topology import Topology

HOST_DEVICE = "eth0"
BRIDGE = "br0"
BRIDGED = ("netem",)
"""The back ends that leave forwarding to the kernel's bridge."""
PREFIX = 16
PREFIX6 = 64
QUEUE_PACKETS = 1000
NO_LINK_LOCAL = "1"
"""Of net.ipv6.conf.*.addr_gen_mode: the device gets no address that it was not given."""
_UNASKED = ("accept_ra", "autoconf", "accept_dad", "dad_transmits", "router_solicitations")
"""Of net.ipv6.conf.*: what IPv6 does and takes unasked."""


def devices_of(topology: Topology, name: str) -> dict[str, str]:
    """An entity's devices as its agent knows them: a host's own, a switch's by port, "switch:neighbour"."""
    if name in topology.hosts:
        return {name: HOST_DEVICE}
    return dict(zip(topology.ports(name), topology.neighbours[name], strict=True))


def ports_by_mac(topology: Topology, name: str) -> dict[str, str | list[str]]:
    """MAC address of every host → the device of a switch that leads to it, or several of equal cost; {} for a host.

    Where there are several ways, group addresses go over the links of a tree.
    """
    if name in topology.hosts:
        return {}
    ports: dict[str, str | list[str]] = {
        topology.all_macs[host]: devices[0] if len(devices) == 1 else list(devices)
        for host, devices in topology.next_hops(name).items()
    }
    return ports | {BROADCAST: list(topology.tree(name))} if topology.ecmp else ports


def agent_config(point: PointSpec, name: str, workdir: Path, home: Path, kernel: str) -> dict[str, Any]:
    """The AgentConfig of an entity as JSON; its journal lies in `home`.

    kernel: the name it was booted under, if any
    """
    return {
        "name": name,
        "kind": "host" if name in point.topology.hosts else "switch",
        "devices": devices_of(point.topology, name),
        "workdir": str(workdir / name),
        "journal": str(home / f"{name}.journal"),
        "backend": point.backend,
        "notes": {"kernel": kernel} if kernel else {},
        "forwarding": ports_by_mac(point.topology, name),
        "commands": any(flow.generator == COMMAND for flow in point.flows),
    }


def device(owner: str, other: str, topology: Topology) -> str:
    """The device of a link's end, in the namespace of its owner."""
    return HOST_DEVICE if owner in topology.hosts else other


def links(topology: Topology, prefix: str = "") -> str:
    """For `ip -batch`: the namespaces, whose names begin with `prefix`, and a veth pair a link."""
    lines = [f"netns add {prefix}{name}" for name in topology.entities]
    lines += [
        f"link add {device(a, b, topology)} netns {prefix}{a} type veth "
        f"peer name {device(b, a, topology)} netns {prefix}{b}"
        for a, b in topology.links
    ]
    return "\n".join(lines) + "\n"


def host(topology: Topology, name: str) -> str:
    """For `ip -n HOST -batch`: addresses, neighbours, everything up.

    A host with IPv6 has NOARP: else its device would join groups of solicited nodes, and send reports about them.
    """
    own = topology.hosts6.get(name)
    lines = [
        "link set lo up",
        f"link set {HOST_DEVICE} address {topology.all_macs[name]}",
        f"address add {topology.hosts[name]}/{PREFIX} dev {HOST_DEVICE}",
        *([f"link set {HOST_DEVICE} arp off"] if own else []),
        f"link set {HOST_DEVICE} up",
        *([f"address add {own}/{PREFIX6} dev {HOST_DEVICE} nodad"] if own else []),
    ]
    near = IPv4Network((topology.hosts[name], PREFIX), strict=False)
    lines += [
        f"route add {address} dev {HOST_DEVICE}"
        for address in topology.hosts.values()
        if IPv4Address(address) not in near
    ]
    lines += [
        f"neighbour replace {address} lladdr {topology.all_macs[other]} nud permanent dev {HOST_DEVICE}"
        for other in topology.hosts
        for address in topology.addresses(other)
        if other != name
    ]
    return "\n".join(lines) + "\n"


def bare_switch(topology: Topology, name: str) -> str:
    """For `ip -n SWITCH -batch`: ports that take every frame, for a program to forward."""
    return "".join(f"link set dev {port} promisc on up\n" for port in topology.neighbours[name])


def switch(topology: Topology, name: str) -> str:
    """For `ip -n SWITCH -batch`: the bridge and its ports."""
    lines = [f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0", f"link set {BRIDGE} up"]
    for port in topology.neighbours[name]:
        lines.append(f"link set dev {port} txqueuelen {QUEUE_PACKETS} master {BRIDGE} up")
    return "\n".join(lines) + "\n"


def forwarding(topology: Topology, name: str) -> str:
    """For `bridge -n SWITCH -batch`: which port each host lies behind; nothing is flooded or learnt."""
    lines = [
        f"fdb replace {topology.all_macs[host]} dev {ports[0]} master static"
        for host, ports in topology.next_hops(name).items()
    ]
    lines += [f"link set dev {port} learning off flood off" for port in topology.neighbours[name]]
    return "\n".join(lines) + "\n"


def sums_matter(point: PointSpec) -> bool:
    """Whether a switch of the point makes packets whose TCP checksum is wrong, or sends one in place of another.

    A veth leaves checksums to a device that does not exist, and its other end takes them as right.
    """
    texts = (str(point.settings.get(name, {}).get("fate", fate.NONE)) for name in point.topology.switches)
    return any(rule.action in (*fate.UNSUMMED, "swap") for text in texts for rule in fate.parse(text))


def build(
    topology: Topology,
    backend: str,
    run: Callable[[Sequence[str], str], str],
    prefix: str = "",
    sums: bool = False,
) -> None:
    """Make the network for switches with this back end; `run` takes a program's words and its standard input.

    prefix: what the names of the namespaces begin with; sums: hosts compute the checksums of what they send
    """
    run(["ip", "-batch", "-"], links(topology, prefix))
    for name in topology.hosts:
        space = prefix + name
        _quiet(space, run, name in topology.hosts6)
        run(["ip", "-n", space, "-batch", "-"], host(topology, name))
        # A NIC with TSO: the stack hands over up to 64 KB, the wire sees packets.
        run(["ip", "netns", "exec", space, "ethtool", "-K", HOST_DEVICE, "tso", "off", "gso", "on", "gro", "off"], "")
        if sums:
            run(["ip", "netns", "exec", space, "ethtool", "-K", HOST_DEVICE, "tx", "off"], "")
    for name in topology.switches:
        space = prefix + name
        _quiet(space, run)
        if backend in BRIDGED:
            run(["ip", "-n", space, "-batch", "-"], switch(topology, name))
            run(["bridge", "-n", space, "-batch", "-"], forwarding(topology, name))
        else:
            run(["ip", "-n", space, "-batch", "-"], bare_switch(topology, name))
        for port in topology.neighbours[name]:
            run(["ip", "netns", "exec", space, "ethtool", "-K", port, "tso", "off", "gso", "off", "gro", "off"], "")


def _quiet(space: str, run: Callable[[Sequence[str], str], str], ipv6: bool = False) -> None:
    """Before the devices of a namespace are up: no IPv6, or one that solicits no router or neighbour by itself."""
    values = {"addr_gen_mode": NO_LINK_LOCAL, **dict.fromkeys(_UNASKED, "0")} if ipv6 else {"disable_ipv6": "1"}
    of = (HOST_DEVICE,) if ipv6 else ("all", "default")
    for value in dict.fromkeys(values.values()):
        names = [name for name, wanted in values.items() if wanted == value]
        files = [f"/proc/sys/net/ipv6/conf/{which}/{name}" for which in of for name in names]
        run(["ip", "netns", "exec", space, "tee", *files], value)
