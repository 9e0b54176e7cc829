# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: marking with a traffic source whose checksums are checked, and a crash.

Started under `unshare --net --mount`; needs HTB and BPF of the running kernel.  RED is as good as not there.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest
from testctl_agent.bpf import htb_mark
from testctl_agent.network import qdisc
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.params.host.htb import Htb, read_state
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value

from agents.tests.own_host import entered, run

HOST = Entity("near", "host", ("eth0",))
SECONDS, RATE = 1.0, 200 * 10**6


def put(name: str, value: Value) -> None:
    registry.module("host", name).apply(HOST, name, value)
    got = registry.module("host", name).read(HOST, name)
    assert got == value, f"{name}: want {value}; got {got}"


def csum_errors() -> int:
    with open("/proc/net/snmp") as lines:
        names, values = [line.split() for line in lines if line.startswith("Tcp:")]
    return int(dict(zip(names, values, strict=True))["InCsumErrors"])


def build() -> subprocess.Popen[bytes]:
    """This namespace is `near`; `far` is that of a child, which receives and whose NIC writes real checksums."""
    script = (
        "import socket, sys, time\n"
        "sys.stdin.readline()\n"
        "listening = socket.create_server(('10.0.0.2', 5001))\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    peer, _ = listening.accept()\n"
        "    while peer.recv(1 << 20): pass\n"
        "    peer.close()\n"
    )
    far = subprocess.Popen(
        ["unshare", "--net", sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    entered(far.pid)
    run(f"ip link add eth0 type veth peer name eth0 netns {far.pid}")
    inside = f"nsenter --net=/proc/{far.pid}/ns/net"
    for number, where in ((1, ""), (2, inside)):
        run(f"{where} ip link set lo up".strip())
        run(f"{where} ip addr add 10.0.0.{number}/16 dev eth0".strip())
        run(f"{where} ip link set eth0 up".strip())
    run(f"{inside} sysctl -qw net.ipv4.tcp_ecn=1")
    run(f"{inside} ethtool -K eth0 tx off")
    assert far.stdin is not None
    assert far.stdout is not None
    far.stdin.write(b"go\n")
    far.stdin.flush()
    assert far.stdout.readline() == b"ready\n"
    return far


def send() -> float:
    """Bits a second that went through."""
    begin, sent = time.monotonic(), 0
    with socket.create_connection(("10.0.0.2", 5001)) as sending:
        while time.monotonic() < begin + SECONDS:
            sent += sending.send(bytes(1 << 18))
        sending.shutdown(socket.SHUT_WR)
        sending.recv(1)
    return sent * 8 / (time.monotonic() - begin)


def emptied() -> htb_mark.Queue:
    """What the programs counted, once all that they counted in has been counted out."""
    until = time.monotonic() + 60
    while (state := htb_mark.read("eth0")) is None or state.queued:
        assert time.monotonic() < until, f"want nothing queued; got {state}"
        time.sleep(0.01)
    return state


def without_red() -> None:
    had = qdisc.unavailable
    qdisc.unavailable = lambda kind: "there is none" if kind == "red" else had(kind)


def check_marking(mark: str) -> None:
    before = [(q.kind, q.handle) for q in qdisc.qdiscs("eth0")]
    put("tcp_ecn", 1)
    put("htb_rate", RATE)
    put("htb_mark", mark)
    put("htb_ecn_threshold", 60_000)
    for tso in (True, False, "whole"):
        put("tso", tso)
        put("htb_buffer", 2_000_000)
        achieved = send()
        state = emptied()
        assert (state.marks > 0, state.marks_data) == (True, mark == "data"), state
        assert csum_errors() == 0
        assert 0.5 * RATE < achieved < 1.05 * RATE, achieved
        print(f"{mark}, tso {tso}: {achieved / 1e6:.0f} Mbit/s,", state)
        put("htb_buffer", "none")
    for name, value in (("htb_ecn_threshold", "none"), ("htb_mark", "data"), ("htb_rate", "none")):
        put(name, value)
    assert [(q.kind, q.handle) for q in qdisc.qdiscs("eth0")] == before


def check_crash(mark: str) -> None:
    """What an agent that died left behind is read, changed and taken away by the next."""
    child = os.fork()
    if not child:
        for name, value in (("htb_rate", RATE), ("htb_mark", mark), ("htb_ecn_threshold", 5000)):
            put(name, value)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert read_state("eth0") == Htb(RATE, None, None, 5000, mark)
    put("htb_ecn_threshold", 60_000)
    assert send() > 0.5 * RATE
    put("htb_ecn_threshold", "none")
    put("htb_mark", "data")
    put("htb_rate", "none")
    assert htb_mark.read("eth0") is None


def check_others_are_left_alone() -> None:
    run("tc qdisc add dev eth0 root handle 5: tbf rate 10mbit burst 10k latency 10ms")
    needs = registry.module("host", "htb_rate").unavailable(HOST, "htb_rate")
    assert needs == "device eth0: want the kernel's default or our own root qdisc; got tbf 5:", needs
    with pytest.raises(ApplyError, match="want the kernel's default or our own root qdisc; got tbf 5:"):
        put("htb_rate", "none")
    run("tc qdisc del dev eth0 root")
    run("tc qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 10k latency 10ms")
    run("tc qdisc add dev eth0 parent 1:1 handle 10: bfifo")  # the leaf has the handle of ours
    with pytest.raises(ApplyError, match="want the kernel's default or our own root qdisc; got tbf 1:"):
        put("htb_rate", "none")
    run("tc qdisc del dev eth0 root")
    run("tc qdisc add dev eth0 clsact")
    put("htb_rate", RATE)
    with pytest.raises(ApplyError, match="want no clsact or ingress qdisc; got one that testctl did not make"):
        put("htb_mark", "ack")
    assert read_state("eth0") == Htb(RATE)
    put("htb_rate", "none")


def main() -> None:
    far = build()
    try:
        without_red()
        for mark in ("ack", "data"):
            check_marking(mark)
            check_crash(mark)
        check_others_are_left_alone()
        for name, value in (("initcwnd", 20), ("initcwnd", "none"), ("gro", True), ("mtu", 9000), ("mtu", 1500)):
            put(name, value)
        run("mount -t sysfs sys /sys")
        put("gro_flush", 20_000)
        put("gro_flush", 0)
    finally:
        far.kill()
        far.wait()
    print("all is as before")


if __name__ == "__main__":
    main()
