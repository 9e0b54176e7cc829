# SPDX-License-Identifier: Apache-2.0
"""The rack's namespaces and devices: a bridge for management, and a cable from each host to the switch."""

from __future__ import annotations

import json
import time
from ipaddress import IPv4Network
from pathlib import Path

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError

from simulated_rack.plan import BRIDGE, PREFIX, Node, SimulatedRack

_PATIENCE_S = 10.0
_ALIAS_CHARACTERS = 255


def refuse(rack: SimulatedRack) -> None:
    """TestbedError where a rack is up already, or its management network is another's."""
    if there := [*namespaces(), *devices()]:
        of = f" --state {state}" if (state := belongs_to()) else ""
        raise TestbedError(
            f"rack: want no rack on this machine; got {', '.join(there)} (plugins/rack/tools/rack down{of})"
        )
    refuse_reached(rack.management)


def up(rack: SimulatedRack) -> None:
    """Make all; TestbedError for what can't be made."""
    bridge = f"{rack.management[1]}/{rack.management.prefixlen}"
    run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "link", "set", BRIDGE, "alias", str(rack.state)[:_ALIAS_CHARACTERS]])
    run(["ip", "addr", "add", bridge, "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    for node in rack.nodes:
        run(["ip", "netns", "add", node.namespace])
        _management(node, rack.management.prefixlen)
    for node in rack.hosts:
        _cable(node, rack.switch)
    for node in rack.nodes:
        _settle(node)


def _settle(node: Node) -> None:
    """Wait until the kernel has noticed that both ends of every cable are up, which it looks at once a second."""
    end = time.monotonic() + _PATIENCE_S
    while waiting := [one["ifname"] for one in json.loads(run(["ip", "-n", node.namespace, "-json", "link", "show"]))
                      if one["operstate"] not in ("UP", "UNKNOWN")]:  # fmt: skip
        if time.monotonic() > end:
            raise TestbedError(
                f"rack, {node.name}: want all devices up after {_PATIENCE_S:g} s; got {', '.join(waiting)} down"
            )
        time.sleep(0.05)


def refuse_reached(network: IPv4Network) -> None:
    """TestbedError where this machine has a route, other than the default, into a network."""
    words = [str(one["dst"]) for one in json.loads(run(["ip", "-json", "-4", "route", "show"]))]
    if taken := [word for word in words if word != "default" and IPv4Network(word).overlaps(network)]:
        raise TestbedError(
            f"rack: want a management network that this machine does not reach yet; got {network}, but there is "
            f"{', '.join(taken)} (--management says another)"
        )


def _inside(node: Node, *words: str) -> None:
    run(["ip", "-n", node.namespace, *words])


def _quiet(node: Node, device: str) -> None:
    """No IPv6 on a device: no packet in the test network that nobody sent, no address that comes later."""
    setting = f"net.ipv6.conf.{device}.disable_ipv6=1"
    run(["ip", "netns", "exec", node.namespace, "sysctl", "-qw", setting])


def _management(node: Node, prefix: int) -> None:
    outside = PREFIX + node.name
    run(["ip", "link", "add", outside, "type", "veth", "peer", "name", "mgmt", "netns", node.namespace])
    run(["ip", "link", "set", outside, "master", BRIDGE, "up"])
    _quiet(node, "mgmt")
    _inside(node, "link", "set", "lo", "up")
    _inside(node, "addr", "add", f"{node.management}/{prefix}", "dev", "mgmt")
    _inside(node, "link", "set", "mgmt", "up")


def _cable(host: Node, switch: Node) -> None:
    for device, port in host.devices.items():
        run(["ip", "link", "add", device, "netns", host.namespace, "address", host.mac, "type", "veth",
             "peer", "name", port, "netns", switch.namespace])  # fmt: skip
        _quiet(host, device)
        _quiet(switch, port)
        _inside(host, "addr", "add", host.address, "dev", device)
        _inside(host, "link", "set", device, "up")
        _inside(switch, "link", "set", port, "up")


def down() -> None:
    """Remove every namespace and device of a rack; those that are gone already are no error.  Raises TestbedError."""
    for name in namespaces():
        run(["ip", "netns", "del", name])
    end = time.monotonic() + _PATIENCE_S
    while there := devices():
        try:
            run(["ip", "link", "del", there[0]])
        except TestbedError:
            # A namespace takes the other end of its cable with it, when the kernel comes to that.
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def belongs_to(bridge: str = BRIDGE) -> Path | None:
    """The directory of the rack that is up, as its bridge says; None where there is none."""
    links = json.loads(run(["ip", "-json", "link", "show"]))
    return next((Path(one["ifalias"]) for one in links if one["ifname"] == bridge and "ifalias" in one), None)


def namespace(node: str) -> str:
    """The network namespace of a node, by the node's name."""
    return PREFIX + node


def namespaces() -> list[str]:
    """The rack's network namespaces on this machine."""
    folder = Path("/run/netns")
    return sorted(path.name for path in folder.glob(PREFIX + "*")) if folder.exists() else []


def devices(prefix: str = PREFIX) -> list[str]:
    """The rack's devices on this machine's side."""
    links = json.loads(run(["ip", "-json", "link", "show"]))
    return sorted(str(one["ifname"]) for one in links if str(one["ifname"]).startswith(prefix))
