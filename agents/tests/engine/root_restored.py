# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: what each parameter of a host changes is gone after a restore.

Started under `unshare --net --mount`.  What is compared is not what the agent attests but all that ip, tc, ethtool
and /proc/sys/net show.  The host is one that an administrator has set up otherwise than the kernel does.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from testctl_agent.cc.struct_ops import unavailable
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.attest import attest
from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.params import registry
from testctl_agent.spec.errors import ApplyError, TestctlError
from testctl_agent.spec.types import Value

from agents.tests.engine.snapshot import SYSCTLS, differ, everything, sysctls
from agents.tests.own_host import run

NETWORK = """
ip link add eth0 numtxqueues 4 numrxqueues 4 type veth peer name far numtxqueues 4 numrxqueues 4
ip link set far up
ip link set eth0 up
ip link set lo up
ip addr add 10.0.0.1/16 dev eth0
ip addr add fd00::1/64 dev eth0 nodad
ip -6 addr add fd00:1::1/64 dev far nodad
ip route add 10.5.0.0/16 via 10.0.0.2 dev eth0 initrwnd 30 rto_min 5ms metric 7
ip route add 10.6.0.0/16 dev eth0 table 77
ip route add default nexthop via 10.0.0.2 weight 2 nexthop via 10.0.0.3
ip nexthop add id 5 via 10.0.0.2 dev eth0
ip route add 10.7.0.0/16 nhid 5
ip route add fd77::/64 via fd00::2
ip -6 rule add from fd00::/64 table 77
ip rule add from 10.0.0.1 table 77
ethtool -K eth0 tx-tcp-mangleid-segmentation off
ethtool -K eth0 tx-tcp-ecn-segmentation off
"""
HARDENED = {
    "ipv4/conf/all/accept_redirects": "0", "ipv4/conf/far/forwarding": "1", "ipv4/conf/default/rp_filter": "2",
    "ipv4/conf/far/rp_filter": "0", "ipv4/neigh/eth0/base_reachable_time_ms": "30500",
    "ipv4/neigh/eth0/unres_qlen_bytes": "212993", "ipv4/neigh/eth0/retrans_time_ms": "1010",
    "ipv4/conf/eth0/arp_ignore": "1", "ipv6/conf/eth0/accept_ra": "0", "ipv6/conf/far/hop_limit": "70",
}  # fmt: skip
VALUES: dict[str, tuple[Value, ...]] = {
    "mtu": (1400, 1280, 1279, 576, 9000),
    "gro": (True, False),
    "tso": (True, False),
    "gro_flush": (20_000, 0),
    "initcwnd": (20,),
    "queues": (2, 3, 1),
    "cc": ("reno", "cubic"),
    "htb_rate": (10**8,),
    "htb_burst": (10_000,),
    "htb_buffer": (50_000,),
    "htb_ecn_threshold": (20_000,),
    "htb_mark": ("ack", "data"),
    "lro": (True,), "ring_rx": (512,), "ring_tx": (512,), "coalesce_rx": (20_000,), "coalesce_tx": (20_000,),
    "coalesce_rx_frames": (8,), "coalesce_tx_frames": (8,), "coalesce_adaptive_rx": (True,),
    "coalesce_adaptive_tx": (True,), "pause_autoneg": (True,), "pause_rx": (True,), "pause_tx": (True,),
    "jitter": (10_000,), "jitter_distribution": ("uniform",), "jitter_tail": (20_000,), "jitter_tail_every": (100,),
    "jitter_seed": (1,), "kernel": ("running",),
}  # fmt: skip
EVERYWHERE = {"mtu", "gro", "tso", "gro_flush", "initcwnd", "queues", "cc", "htb_rate", "htb_burst", "htb_buffer"}
"""What a veth can have in any kernel with HTB."""
BORROWED = "dctcp_bug"
MIN_SYSCTLS, TOGETHER = 150, 40
"""So many can be set in the namespace of any kernel; so many at a time when all of ip, tc and ethtool is compared."""


def others(text: str) -> Iterator[str]:
    """Other values that a sysctl with this one might take."""
    words = text.split()
    for change in (1, -1, 2, 1000):  # of milliseconds the kernel keeps ticks
        numbers = [*words[:-1], str(int(words[-1]) + change)] if words and words[-1].lstrip("-").isdigit() else []
        if numbers:
            yield " ".join(numbers)
    yield "1"


def apply(engine: Engine, *settings: Setting) -> str:
    """Why they can't be set; "": they are."""
    try:
        engine.apply(settings)
    except TestctlError as error:
        return str(error)
    return ""


def parameters(engine: Engine, devices: tuple[str, ...]) -> int:
    """Every parameter that has a name of its own, with every value; how many changed something."""
    names = {name for name, spec in registry.specs()["host"].items() if spec.role == "state" and not spec.pattern}
    assert names == VALUES.keys(), names ^ VALUES.keys()
    changed: set[str] = set()
    count = 0
    before, said = everything(*devices), attest(devices)
    for name, values in VALUES.items():
        rate = [Setting("alpha", "htb_rate", 10**9)] if name.startswith("htb_") and name != "htb_rate" else []
        for value in values:
            why = apply(engine, *rate, Setting("alpha", name, value))
            if not why:
                during = differ(before, everything(*devices))
                changed |= {name} if during else set()
                count += bool(during)
                assert not during or attest(devices) != said, f"{name} {value}: not attested: {during}"
                engine.restore()
            after = differ(before, everything(*devices))
            assert not after, f"{name} {value} ({why or 'applied'}): {after}"
            assert attest(devices) == said, differ(said, attest(devices))
    assert changed >= EVERYWHERE, EVERYWHERE - changed
    return count


def names() -> Iterator[str]:
    """Every sysctl that a plan may name here."""
    for path in sorted(SYSCTLS.rglob("*")):
        name = f"net.{'.'.join(path.relative_to(SYSCTLS).parts)}"
        if path.is_file() and registry.find("host", name) is not None:
            yield name


def sysctl(engine: Engine, name: str) -> Setting | None:
    """Set a sysctl to another value; None where none can be had."""
    path = SYSCTLS / name.removeprefix("net.").replace(".", "/")
    try:
        now = path.read_text()
    except OSError:
        now = "0"
    for value in others(now):
        spec = registry.find("host", name)
        assert spec is not None
        try:
            setting = Setting("alpha", name, spec.type.parse(value))
        except ValueError:
            continue
        if not apply(engine, setting) and " ".join(path.read_text().split()) != " ".join(now.split()):
            return setting
    return None


def every_sysctl(engine: Engine, devices: tuple[str, ...]) -> tuple[int, list[str]]:
    """(how many can be changed, those that can't): each by itself, then many together."""
    before, said = sysctls(), attest(devices)
    done: list[Setting] = []
    refused: list[str] = []
    for name in names():
        setting = sysctl(engine, name)
        if setting is None:
            refused.append(name)
        else:
            assert f"sysctl {name}" in said, f"{name}: not attested"
            done.append(setting)
            engine.restore()
        after = differ(before, sysctls())
        assert not after, f"{name} {setting}: {after}"
    whole = everything(*devices)
    for first in range(0, len(done), TOGETHER):
        apply(engine, *done[first : first + TOGETHER])
        engine.restore()
        assert not differ(whole, everything(*devices)), differ(whole, everything(*devices))
    assert attest(devices) == said, differ(said, attest(devices))
    return len(done), refused


def registered() -> set[str]:
    """The congestion controls of the whole machine, which others may use as well."""
    return set((SYSCTLS / "ipv4/tcp_available_congestion_control").read_text().split())


def congestion_control(engine: Engine) -> None:
    """One that the kernel has not is registered as BPF for as long as it is set."""
    if unavailable() or BORROWED in registered():
        return
    assert not apply(engine, Setting("alpha", "cc", BORROWED))
    assert BORROWED in registered()
    engine.restore()
    assert BORROWED not in registered()


def refusals(engine: Engine) -> None:
    """What the kernel would not bring back is refused before anything is changed, with the reason."""
    cases = (
        (1279, "", "", "eth0 has IPv6, which the kernel removes below 1280"),
        (1400, "ip link add link eth0 name upper type macvlan", "ip link del upper", "upper lies on eth0 and has 1500"),
        (1400, "sysctl -qw net.ipv6.conf.eth0.mtu=1450", "sysctl -qw net.ipv6.conf.eth0.mtu=1500", "eth0.mtu is 1450"),
        (1400, "ip route add fd88::/64 dev eth0 mtu 1410", "ip route del fd88::/64", "1 IPv6 routes through eth0"),
    )
    for mtu, before, after, why in cases:
        if before:
            run(before)
        whole = everything("eth0")
        said = apply(engine, Setting("alpha", "tcp_sack", 0), Setting("alpha", "mtu", mtu))
        assert why in said, (mtu, before, said)
        assert "could not be undone" in said
        assert not differ(whole, everything("eth0"))
        if after:
            run(after)
    Path("/sys/class/net/eth0/queues/rx-3/rps_cpus").write_text("1")
    said = apply(engine, Setting("alpha", "queues", 3))
    assert "queue 3 of eth0 has rps_cpus" in said, said
    Path("/sys/class/net/eth0/queues/rx-3/rps_cpus").write_text("0")


def main() -> None:
    run("mount -t sysfs sys /sys")
    for line in NETWORK.strip().splitlines():
        run(line)
    while "tentative" in everything()["ip -6 address 1"] + everything()["ip -6 address 2"]:
        time.sleep(0.1)
    for name, value in HARDENED.items():
        (SYSCTLS / name).write_text(value)
    Path("/sys/class/net/eth0/queues/rx-0/rps_cpus").write_text("1")
    devices = ("eth0",)
    with tempfile.TemporaryDirectory() as folder:
        config = AgentConfig("alpha", "host", {"alpha": "eth0"}, Path(folder) / "work", Path(folder) / "journal")
        engine = assemble(config).engine
        congestion_control(engine)
        refusals(engine)
        changed = parameters(engine, (*devices, "far"))
        count, refused = every_sysctl(engine, devices)
    assert count >= MIN_SYSCTLS, (count, refused)
    not_here = [name for name in refused if ".far." not in name and ".lo." not in name]
    print(f"{changed} values of parameters, {count} sysctls; not settable: {' '.join(not_here)}")
    print("all is as before")


if __name__ == "__main__":
    try:
        main()
    except ApplyError as failed:
        sys.exit(str(failed))
