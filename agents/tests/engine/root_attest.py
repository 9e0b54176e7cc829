# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: what parameters change is attested, and gone after a restore.

Started under `unshare --net --mount`; needs veth and HTB of the running kernel.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from testctl_agent.engine.apply import Setting
from testctl_agent.engine.attest import attest
from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.spec.types import Value

from agents.tests.engine.snapshot import differ
from agents.tests.own_host import run, with_eth0

CHANGES: dict[str, tuple[Value, str]] = {
    "mtu": (1400, "link eth0 mtu"),
    "tcp_sack": (0, "sysctl net.ipv4.tcp_sack"),
    "tcp_rmem": ("4096 8192 16384", "sysctl net.ipv4.tcp_rmem"),
    "net.ipv4.tcp_ecn": (1, "sysctl net.ipv4.tcp_ecn"),
    "gro": (True, "link eth0 offloads"),
    "tso": (False, "link eth0 offloads"),
    "gro_flush": (20_000, "link eth0 gro_flush_timeout"),
    "initcwnd": (20, "link eth0 routes"),
    "htb_rate": (10**8, "link eth0 qdiscs"),
    "htb_burst": (10_000, "link eth0 classes"),
    "htb_buffer": (50_000, "link eth0 qdiscs"),
    "cc": ("reno", "sysctl net.ipv4.tcp_congestion_control"),
}


def main() -> None:
    with_eth0()
    with tempfile.TemporaryDirectory() as folder:
        config = AgentConfig("alpha", "host", {"alpha": "eth0"}, Path(folder) / "work", Path(folder) / "journal")
        engine = assemble(config).engine
        before = attest(["eth0"])
        for name, (value, fact) in CHANGES.items():
            rate = [Setting("alpha", "htb_rate", 10**9)] if name in ("htb_burst", "htb_buffer") else []
            engine.apply([*rate, Setting("alpha", name, value)])
            changed = {key for key, text in attest(["eth0"]).items() if before.get(key) != text}
            assert fact in changed, (name, changed)
            engine.restore()
            assert not (left := differ(before, attest(["eth0"]))), (name, left)
        engine.apply([Setting("alpha", name, value) for name, (value, _) in CHANGES.items()])
        assert attest(["eth0"]) != before
        engine.restore()
        assert not (left := differ(before, attest(["eth0"]))), left
        for command, fact in {
            "link set eth0 promisc on": "link eth0 promiscuity",
            "link set eth0 txqueuelen 7": "link eth0 txqueuelen",
            "link set eth0 address 02:00:00:00:00:09": "link eth0 address",
            "addr add 10.9.0.1/24 dev eth0": "link eth0 ipv4",
        }.items():
            run(f"ip {command}")
            assert attest(["eth0"])[fact] != before[fact], fact
        run("tc qdisc add dev eth0 clsact")
        assert "clsact" in attest(["eth0"])["link eth0 qdiscs"]
    print("all is as before")


if __name__ == "__main__":
    main()
