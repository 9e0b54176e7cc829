# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a namespace of its own: initcwnd of routes with several nexthops, and of routes that have a twin.

Started under `unshare --net --mount`.
"""

from __future__ import annotations

import subprocess
import time

from testctl_agent.engine.attest import attest
from testctl_agent.params.entity import Entity
from testctl_agent.params.host import initcwnd

NETWORK = """
ip link add eth0 type veth peer name far0
ip link add eth1 type veth peer name far1
ip link set far0 up
ip link set far1 up
ip link set eth0 up
ip link set eth1 up
ip addr add 10.0.0.1/24 dev eth0
ip addr add 10.0.1.1/24 dev eth1
ip addr add fd00::1/64 dev eth0 nodad
ip addr add fd01::1/64 dev eth1 nodad
ip route add 10.7.0.0/16 nexthop via 10.0.0.2 weight 2 nexthop via 10.0.1.2
ip route add 10.8.0.0/16 mtu 1400 nexthop via 10.9.9.9 dev eth1 onlink nexthop via 10.9.9.9 dev eth0 onlink
ip route add 10.9.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.1.3
ip -6 route add fd07::/64 nexthop via fd01::2 weight 2 nexthop via fd00::2
ip nexthop add id 1 via 10.0.0.2 dev eth0
ip nexthop add id 2 via 10.0.1.2 dev eth1
ip nexthop add id 3 via fd00::2 dev eth0
ip nexthop add id 4 via fd01::2 dev eth1
ip nexthop add id 10 group 1/2
ip nexthop add id 11 group 3/4
ip route add 10.10.0.0/16 nhid 10
ip -6 route add fd10::/64 nhid 11
"""
ELSEWHERE = ("10.0.1.0/24", "10.9.0.0/16", "fd01::/64", "fe80::/64")
"""Routes that don't leave through eth0, and link-local ones."""
HOST = Entity("near", "host", ("eth0",))


def said(command: str) -> str:
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def routes() -> dict[str, str]:
    """Each route of the main table, its nexthops in its line, by destination."""
    lines = (said("ip -4 -o route") + said("ip -6 -o route")).splitlines()
    return {line.split()[0]: line for line in lines}


def check() -> None:
    before, attested = routes(), attest(["eth0"])
    initcwnd.apply(HOST, "initcwnd", 20)
    assert initcwnd.read(HOST, "initcwnd") == 20
    for destination, line in routes().items():
        assert ("initcwnd 20" in line) == (destination not in ELSEWHERE), line
    initcwnd.apply(HOST, "initcwnd", "none")
    assert routes() == before, (before, routes())
    said("ip route change 10.7.0.0/16 initcwnd 5 nexthop via 10.0.0.2 weight 2 nexthop via 10.0.1.2")
    assert attest(["eth0"]).items() ^ attested.items() == {
        ("link eth0 routes", attested["link eth0 routes"]), ("link eth0 routes", attest(["eth0"])["link eth0 routes"])
    }  # fmt: skip
    said("ip route change 10.7.0.0/16 nexthop via 10.0.0.2 weight 2 nexthop via 10.0.1.2")
    assert attest(["eth0"]) == attested


def main() -> None:
    for line in NETWORK.strip().splitlines():
        said(line)
    check()
    for group in (10, 11):  # without carrier the kernel takes a nexthop out of its group
        said(f"ip nexthop del id {group}")
    attested = attest(["eth0"])["link eth0 routes"]
    said("ip link set far1 down")
    until = time.monotonic() + 30
    while "linkdown" not in routes()["10.7.0.0/16"] or "linkdown" not in routes()["fd07::/64"]:  # by a worker
        assert time.monotonic() < until, routes()
        time.sleep(0.01)
    assert attest(["eth0"])["link eth0 routes"] == attested
    check()
    assert initcwnd.unavailable(HOST, "initcwnd") == ""
    for address, twin in {"10.0.0.9/24": "10.0.0.0/24", "fd00::9/64": "fd00::/64"}.items():
        said(f"ip addr add {address} dev eth1")
        why = f"{twin} has two routes of one metric, of which the kernel would replace the first"
        assert initcwnd.unavailable(HOST, "initcwnd") == why, initcwnd.unavailable(HOST, "initcwnd")
        said(f"ip addr del {address} dev eth1")
    print("all is as before")


if __name__ == "__main__":
    main()
