# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: the network of a topology made by the programs, and by the lab's own code.

Prints a line of JSON for each: what the programs say of all its namespaces afterwards.  BACKEND names the switches'.
IPV6 is not empty for hosts that have it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ["TESTCTL_ROOT"] + "/lab/boot")

import commands
from testctl.core.topology import Topology
from testctl.system.subprocesses import run
from testctl.testbeds import network

CHAIN = Topology(
    hosts={"h1": "10.0.0.1", "h2": "10.0.0.2", "h3": "10.0.0.3"},
    switches=("s1", "s2"),
    links=(("h1", "s1"), ("h2", "s2"), ("h3", "s2"), ("s1", "s2")),
)
BOTH = replace(CHAIN, hosts6={"h1": "fd00::1", "h2": "fd00::2", "h3": "fd00::3"})
IPV6 = ("net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6")
AT_RANDOM = {"address", "permaddr", "link_netnsid", "link_netns", "link", "bridge_id", "designated_root", "root_id",
             "designated_bridge"}  # fmt: skip
"""Of switches' ports; and the other ends' places, which depend on the order in which namespaces were made."""


def settled(found: Any) -> Any:
    """Without what is drawn at random, and without times."""
    if isinstance(found, dict):
        timers = {name for name in found if name.endswith(("_timer", "_time"))}
        return {name: settled(one) for name, one in found.items() if name not in AT_RANDOM | timers}
    return [settled(one) for one in found] if isinstance(found, list) else found


def shown(prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in CHAIN.entities:
        space = prefix + name
        links = json.loads(run(["ip", "-n", space, "-d", "-j", "address"]))
        inside = ["ip", "netns", "exec", space]
        found[name] = {
            "links": settled(links),
            "hosts' addresses": [one["address"] for one in links if name in CHAIN.hosts],
            "neighbours": sorted(map(str, json.loads(run(["ip", "-n", space, "-j", "neighbour"])))),
            "routes": json.loads(run(["ip", "-n", space, "-j", "route", "show", "table", "all"])),
            "offloads": {one["ifname"]: run([*inside, "ethtool", "-k", one["ifname"]]) for one in links},
            "routes ipv6": json.loads(run(["ip", "-n", space, "-6", "-j", "route", "show", "table", "all"])),
            "IPv6 is off": run([*inside, "sysctl", *IPV6]),
            "IPv6": run([*inside, "sysctl", "-a", "-r", r"net\.ipv6\.conf\.eth0\.(?!stable_secret)"]),
            "sent": run([*inside, "cat", "/proc/net/dev"]),
        }
    return found


def main() -> None:
    Path("/run/tmp").mkdir()
    os.environ["TMPDIR"] = "/run/tmp"
    for prefix, how in (("p-", lambda argv, text: run(argv, stdin=text)), ("o-", commands.run)):
        network.build(BOTH if os.environ["IPV6"] else CHAIN, os.environ["BACKEND"], how, prefix)
        time.sleep(3)  # the kernel looks at links after a while
        print(json.dumps(shown(prefix)))


if __name__ == "__main__":
    main()
