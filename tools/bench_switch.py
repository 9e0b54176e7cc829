# SPDX-License-Identifier: Apache-2.0
"""The switch on the running kernel, in namespaces: as a bridge, as the eBPF program, as BMv2 (root).

    source --- switch: "a" "b" --- sink

Packets of 64 bytes come up the receive path of port a as fast as the kernel takes them and are
counted, and dropped, where the sink receives them.  TCP is one connection of `tgen` with writes of 1
MiB; no end and no port merges or splits packets behind the wire (TSO and GRO are off).

With TESTCTL_BENCH_P4=PROGRAM.p4:ENTRIES a program of the user's is measured too, on eBPF and on BMv2; its entries name
the hosts `sender` and `receiver`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import bench_packets as packets
from testctl_agent.bpf import load
from testctl_agent.generators import tgen
from testctl_agent.network import qdisc
from testctl_agent.switch import backend as backends
from testctl_agent.system import namespace

SOURCE, SWITCH, SINK = "testctl-bench-source", "testctl-bench-switch", "testctl-bench-sink"
HOSTS = {SOURCE: ("02:00:00:00:00:01", "10.9.0.1", "a"), SINK: ("02:00:00:00:00:02", "10.9.0.2", "b")}
PORT = 5201
ROUNDS = 5
PACKETS_S, TCP_S = 1.0, 3
OWN = "TESTCTL_BENCH_P4"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextmanager
def network() -> Iterator[None]:
    """Two hosts and a switch without any forwarding."""
    for name in (*HOSTS, SWITCH):
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        quiet = [f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default")]
        subprocess.run(["ip", "netns", "exec", name, "sysctl", "-qw", *quiet], check=True)
    try:
        for name, (mac, address, port) in HOSTS.items():
            ip(*f"-n {SWITCH} link add name {port} type veth peer name eth0 address {mac} netns {name}".split())
            ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            for other, (far_mac, far, _) in HOSTS.items():
                if other != name:
                    ip("-n", name, "neigh", "replace", far, "lladdr", far_mac, "nud", "permanent", "dev", "eth0")
            for where, device in ((name, "eth0"), (SWITCH, port)):
                offloads = ["tso", "off", "gso", "off", "gro", "off"]
                words = ["ip", "netns", "exec", where, "ethtool", "-K", device, *offloads]
                subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
                ip("-n", where, "link", "set", "dev", device, "up")
        time.sleep(0.5)
        yield
    finally:
        for name in (*HOSTS, SWITCH):
            ip("netns", "del", name)


@contextmanager
def bridge() -> Iterator[None]:
    """Plain kernel forwarding, no netfilter in it."""
    calls = [f"net.bridge.bridge-nf-call-{what}=0" for what in ("iptables", "ip6tables", "arptables")]
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0")
    subprocess.run(["ip", "netns", "exec", SWITCH, "sysctl", "-eqw", *calls], check=True)
    ip("-n", SWITCH, "link", "set", "br0", "up")
    for mac, _, port in HOSTS.values():
        ip("-n", SWITCH, "link", "set", "dev", port, "master", "br0")
        subprocess.run(["bridge", "-n", SWITCH, "fdb", "replace", mac, "dev", port, "master", "static"], check=True)
        subprocess.run(["bridge", "-n", SWITCH, "link", "set", "dev", port, "learning", "off"], check=True)
    time.sleep(0.5)
    yield


def with_checksums() -> None:
    """BMv2 reads packets as they are, with checksums that nobody has filled in yet."""
    namespace.private_mounts()
    namespace.mount("sysfs", "/sys")  # of the network namespace that it is in: BMv2 asks there for links
    for host in HOSTS:
        words = ["ip", "netns", "exec", host, "ethtool", "-K", "eth0", "tx", "off"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def own(name: str) -> Iterator[None]:
    """The user's program, on eBPF or on BMv2."""
    from testctl.plan import load_plan
    from testctl.plan.entries import rows_of
    from testctl.system import p4_programs
    from testctl_agent.spec import p4_program
    from testctl_agent.switch import ebpf, own_program

    source, _, listed = os.environ[OWN].partition(":")
    (point,) = load_plan(b"topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[bulk, bytes, 1MB]]").points
    value = p4_program.of_file(Path(source).read_bytes(), Path(source))
    entries = p4_program.entries_of_file(Path(listed).read_bytes(), Path(listed))
    addresses = dict(zip(("sender", "receiver"), (address for _, address, _ in HOSTS.values()), strict=True))
    topology = replace(point.topology, hosts=addresses)
    rows = p4_program.show_entries(rows_of(entries, p4_programs.layout_of(value), topology, "switch").to_json())
    os.environ[p4_program.PROGRAMS] = str(p4_programs.directory())
    ports = tuple(port for _, _, port in HOSTS.values())
    with packets.inside(SWITCH), tempfile.TemporaryDirectory() as where:
        if name == "ebpf":
            switch = ebpf.open_narrow(ports, {}, {("", "program"): value, ("", "entries"): rows})
            try:
                yield
            finally:
                with packets.inside(SWITCH):
                    switch.close()
            return
        from testctl_bmv2 import backend, p4info, simple_switch
        from testctl_bmv2.p4runtime import P4RuntimeDriver

        with_checksums()
        made, info = Path(where) / "own.json", Path(where) / "own.p4info.txtpb"
        made.write_bytes(p4_program.parse(value)[1])
        p4c = os.environ.get(p4_program.P4C, "p4c-bm2-ss")
        subprocess.run([p4c, "--arch", "v1model", "--p4runtime-files", info, "-o", made, source], check=True)
        running = simple_switch.start(dict(enumerate(ports, 1)), simple_switch.run_directory())
        driver = P4RuntimeDriver(running.address, made, p4info.read(info))
        own_program.fill(driver, rows)  # type: ignore[arg-type]
        for port in ports:
            backend.take(port)
        try:
            yield
        finally:
            driver.close()
            running.close()


@contextmanager
def program(name: str) -> Iterator[None]:
    """A back end with the testbed program; the bench's connection is one of its flows."""
    with packets.inside(SWITCH):
        if name == "bmv2":
            with_checksums()
        devices = {f"switch:{port}": port for _, _, port in HOSTS.values()}
        switch = backends.load(name, devices, {mac: port for mac, _, port in HOSTS.values()})
        switch.apply("", "flows", f"bulk/0 tcp {HOSTS[SOURCE][1]}:{PORT - 1} {HOSTS[SINK][1]}:{PORT}")
    try:
        yield
    finally:
        with packets.inside(SWITCH):
            switch.close()


def frame() -> bytes:
    """64 bytes: a segment of a connection that the switch does not know."""
    macs = bytes.fromhex((HOSTS[SINK][0] + HOSTS[SOURCE][0]).replace(":", ""))
    addresses = bytes(int(part) for host in (SOURCE, SINK) for part in HOSTS[host][1].split("."))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 50, 0, 0x4000, 64, 6, 0) + addresses
    total = sum(struct.unpack(">10H", head))
    head = head[:10] + struct.pack(">H", 0xFFFF - (total % 0xFFFF)) + head[12:]
    return macs + b"\x08\x00" + head + struct.pack(">HHIIBBHHH", 7, 8, 1, 1, 0x50, 0x10, 1000, 0, 0) + bytes(10)


def received() -> int:
    """Packets that the sink's device has received."""
    with packets.inside(SINK):
        text = Path("/proc/thread-self/net/dev").read_text(encoding="ascii")
    return int(next(line for line in text.splitlines() if "eth0" in line).split()[2])


def packet_rate() -> float:
    """Packets a second that reach the sink."""
    with packets.inside(SINK):
        drop = load.load_program(packets.SCHED_CLS, "drop", packets.PASS)
        qdisc.put_clsact("eth0", [("drop", qdisc.INGRESS, drop)])
    with packets.inside(SWITCH):
        packets.enable("a")
        packets.flood("a", frame(), 0.2)
        before, begin = received(), time.perf_counter()
        packets.flood("a", frame(), PACKETS_S)
        return (received() - before) / (time.perf_counter() - begin)


def tcp_rate() -> float:
    """Bit/s of one connection's payload."""
    with tempfile.TemporaryDirectory() as where:
        binary, out = tgen.binary() or tgen.BINARY, Path(where) / "server.json"
        both = [f"server_port={PORT}", f"client_port={PORT - 1}", f"address={HOSTS[SINK][1]}", "lowat=262144"]
        at = time.time_ns() + 10**9
        times = [f"start_ns={at}", f"end_ns={at + TCP_S * 10**9}", f"limit_ns={at + 60 * 10**9}"]
        argv = ["ip", "netns", "exec", SINK, binary, "serve", *both, f"out={out}", times[2]]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            server.stdout.readline()
            sender = ["ip", "netns", "exec", SOURCE, binary, "send", *both, *times, f"bind={HOSTS[SOURCE][1]}"]
            subprocess.run([*sender, "write_size=1048576", f"out={where}/client.json"], check=True)
        return goodput(out)


def goodput(result: Path) -> float:
    """Bit/s between the first byte and the last that a server received."""
    import json

    (conn,) = json.loads(result.read_text(encoding="utf-8"))["connections"]
    return float(conn["bytes_received"] * 8e9 / (conn["last_byte_ns"] - conn["first_byte_ns"]))


def kinds() -> dict[str, object]:
    """What can be measured here."""
    found: dict[str, object] = {"bridge": bridge, "ebpf": lambda: program("ebpf")}
    has_bmv2 = shutil.which(os.environ.get("TESTCTL_BMV2") or "simple_switch_grpc") and importlib.util.find_spec("p4")
    if has_bmv2:
        found["bmv2"] = lambda: program("bmv2")
    if os.environ.get(OWN):
        found["own, ebpf"] = lambda: own("ebpf")
        if has_bmv2:
            found["own, bmv2"] = lambda: own("bmv2")
    return found


def switch(_where: Path) -> None:
    """Packets a second and Gb/s of each kind, in turns, and their ratios; the best of the rounds."""
    rates: dict[str, list[tuple[float, float]]] = {}
    for _ in range(ROUNDS):
        for name, open_kind in kinds().items():
            with network(), open_kind():  # type: ignore[operator]
                gbps = tcp_rate() / 1e9
                rates.setdefault(name, []).append((packet_rate(), gbps))
    best = {name: [max(one) for one in zip(*got, strict=True)] for name, got in rates.items()}
    for name, (pps, gbps) in best.items():
        print(f"switch, {name:9}: {pps / 1e3:7.0f} thousand packets of 64 bytes a second, {gbps:5.2f} Gb/s of TCP")
    for one, other in (("ebpf", "bridge"), ("ebpf", "bmv2"), ("own, ebpf", "own, bmv2"), ("own, ebpf", "ebpf")):
        if one in best and other in best:
            ratios = [ours / theirs for ours, theirs in zip(best[one], best[other], strict=True)]
            print(f"switch, {one} over {other}: {ratios[0]:.2f} in packets, {ratios[1]:.2f} in TCP")


if __name__ == "__main__":
    switch(Path())
