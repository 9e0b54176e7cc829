# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: HTB's data marking is an exact threshold, whatever does it; ACK marking counts to zero.

A host (namespace `near`) sends datagrams in one burst at 1 Mbit/s, so that all but the first
wait.  Prints one line a check; an assertion ends it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from testctl_agent.bpf import htb_mark
from testctl_agent.network import qdisc
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.spec.types import Value

from agents.tests import lab_hosts

HEADERS, PAYLOAD = 42, 1000
PACKET = HEADERS + PAYLOAD
ECT0, CE = 2, 3
HOST = Entity("near", "host", ("eth0",))


def build() -> socket.socket:
    """Two hosts on one wire; this process ends up in `near`; returns a socket that listens in `far`."""
    lab_hosts.two_hosts()
    lab_hosts.enter("far")
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("10.0.0.2", 9))
    listening.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    lab_hosts.enter("near")
    return listening


def put(name: str, value: Value) -> None:
    lab_hosts.put(HOST, name, value)


def burst(listening: socket.socket, count: int, ecn: int) -> list[int]:
    """Send `count` datagrams at once; returns the ECN bits of those that arrive."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        for _ in range(count):
            sending.sendto(bytes(PAYLOAD), ("10.0.0.2", 9))
        time.sleep(count * PACKET * 8e-6 + 0.5)
    seen: list[int] = []
    listening.setblocking(False)
    while True:
        try:
            _, extra, _, _ = listening.recvmsg(2048, 64)
        except BlockingIOError:
            return seen
        seen.append(extra[0][2][0] & 3)


def check_data_marking(listening: socket.socket, marked: Callable[[], int]) -> None:
    """Datagram j (from 0) finds (j - 1) packets waiting: CE from the first that finds the threshold."""
    expected = 0
    for waiting in (1, 5, 20):
        for more in (-1, 0, 1):
            put("htb_ecn_threshold", waiting * PACKET + more)
            first = waiting + 1 + (more > 0)
            expected += 2 * (40 - first)
            for _ in range(2):
                assert burst(listening, 40, ECT0) == [ECT0] * first + [CE] * (40 - first), (waiting, more)
            assert burst(listening, 40, 0) == [0] * 40
    assert marked() == expected, marked()
    put("htb_buffer", 10 * PACKET)
    assert len(burst(listening, 40, ECT0)) == 11
    put("htb_buffer", "none")
    put("htb_ecn_threshold", "none")


def marked_by_red() -> int:
    return int(next(q for q in qdisc.qdiscs("eth0") if q.kind == "red").extra["marked"])


def marked_by_programs() -> int:
    state = htb_mark.read("eth0")
    assert state is not None
    assert (state.queued, state.drops) == (0, 0), state
    return state.marks


def check_data_marking_by_both(listening: socket.socket) -> None:
    """By RED, and by the programs as if the kernel had none: the same packets."""
    check_data_marking(listening, marked_by_red)
    had = qdisc.unavailable
    qdisc.unavailable = lambda kind: "there is none" if kind == "red" else had(kind)
    check_data_marking(listening, marked_by_programs)
    qdisc.unavailable = had
    assert htb_mark.read("eth0") is None
    print("data marking is exact")


def check_ack_marking(listening: socket.socket) -> None:
    put("htb_mark", "ack")
    put("htb_ecn_threshold", 5 * PACKET)
    assert burst(listening, 40, ECT0) == [ECT0] * 40
    state = htb_mark.read("eth0")
    assert state is not None
    assert (state.queued, state.drops) == (0, 0), state
    put("htb_buffer", 10 * PACKET)
    assert len(burst(listening, 40, 0)) == 11
    print("what enters and what leaves sum to", htb_mark.read("eth0"))


def check_tcp(tso: bool) -> None:
    """Half a second of TCP at 1 Gbit/s: ACKs get ECE, none has a bad checksum, the count ends at 0."""
    put("tso", tso)
    put("tcp_ecn", 1)
    put("cc", "dctcp")
    put("htb_rate", 10**9)
    put("htb_buffer", "none")
    put("htb_ecn_threshold", 30_000)
    lab_hosts.enter("far")
    listening = socket.create_server(("10.0.0.2", 5001))
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_ecn=1", "net.ipv4.tcp_congestion_control=dctcp"], check=True)
    lab_hosts.enter("near")
    child = os.fork()
    if not child:
        peer, _ = listening.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 18)
        while peer.recv(1 << 20):
            pass
        os._exit(0)
    begin = time.monotonic()
    with socket.create_connection(("10.0.0.2", 5001)) as sending:
        sent = 0
        while time.monotonic() < begin + 0.5:
            sent += sending.send(bytes(1 << 20))
    os.waitpid(child, 0)
    took = time.monotonic() - begin
    time.sleep(1)
    state = htb_mark.read("eth0")
    assert state is not None
    assert state.queued == 0, state
    assert state.marks > 10, state
    assert 0.85e9 < sent * 8 / took < 1e9, sent * 8 / took
    print(f"tso {tso}: {sent * 8 / took / 1e6:.0f} Mbit/s,", state)
    listening.close()


def check_nic() -> None:
    """What Describe asks of the NIC's parameters: a veth has queues, and says what it has not."""
    wanted = {
        "queues": "",
        "ring_rx": "device eth0 (veth) has no rings",
        "coalesce_tx": "device eth0 (veth) has no send coalescing by time",
        "pause_rx": "device eth0 (veth) has no pause frames",
        "lro": "device eth0 (veth) has no large receive offload that can be switched",
    }
    got = {name: registry.module("host", name).unavailable(HOST, name) for name in wanted}
    assert got == wanted, got
    assert registry.module("host", "queues").read(HOST, "queues") == 1
    print("a veth's queues: 1")


def main() -> None:
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()
    Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").write_text(available)
    listening = build()
    before = [q.kind for q in qdisc.qdiscs("eth0")]
    put("htb_rate", 10**6)
    put("htb_burst", 1)
    check_data_marking_by_both(listening)
    check_ack_marking(listening)
    put("htb_burst", "none")
    for tso in (True, False):
        check_tcp(tso)
    put("htb_mark", "data")
    put("htb_ecn_threshold", "none")
    put("htb_rate", "none")
    assert [q.kind for q in qdisc.qdiscs("eth0")] == before
    subprocess.run(["mount", "-t", "sysfs", "sys", "/sys"], check=True)
    put("kernel", ".".join(os.uname().release.split(".")[:2]))
    for name, value in (("initcwnd", 20), ("initcwnd", "none"), ("gro", True), ("gro_flush", 20_000), ("mtu", 9000)):
        put(name, value)
    check_nic()
    print("all is as before")


if __name__ == "__main__":
    main()
