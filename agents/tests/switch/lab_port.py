# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: a netem port sends at its rate, then delays, and holds its buffer."""

from __future__ import annotations

import socket
import struct
import time

import pytest
from testctl_agent.network import netlink, port_qdisc, qdisc
from testctl_agent.switch import backend as backends
from testctl_agent.switch.backend import UNSET

from agents.tests import lab_hosts

SO_TIMESTAMPNS = 35
PAYLOAD = 1472
PACKET = 14 + 1500
PORT = "receiver"
CLOCK_NS = 5000
"""Every reading of the clock moves virtual time by 256 ns: what sending and stamping may add."""


def build() -> socket.socket:
    """A switch's port and the host at its other end; this process is at the switch."""
    lab_hosts.add("switch", "host")
    lab_hosts.ip(f"-n switch link add {PORT} type veth peer name eth0 netns host")
    lab_hosts.number_ends(("switch", PORT), ("host", "eth0"))
    lab_hosts.enter("host")
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("10.0.0.2", 9))
    listening.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    lab_hosts.enter("switch")
    return listening


def burst(listening: socket.socket, count: int) -> list[int]:
    """Send `count` packets at once; returns when each arrived, in ns after the first was sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
        begin = time.time_ns()
        for _ in range(count):
            sending.sendto(bytes(PAYLOAD), ("10.0.0.2", 9))
        time.sleep(1)
    arrived: list[int] = []
    listening.setblocking(False)
    while True:
        try:
            _, extra, _, _ = listening.recvmsg(2048, 64)
        except BlockingIOError:
            return arrived
        seconds, nanoseconds = struct.unpack("=qq", extra[0][2])
        arrived.append(seconds * 10**9 + nanoseconds - begin)


def ask_for_a_class() -> None:
    """A port whose AQM is the lab's own has no class: the kernel refuses who asks for it."""
    qdisc.put_qdisc(PORT, port_qdisc.KIND, 0x10000, qdisc.ROOT, port_qdisc.Options().pack())
    asked = struct.pack("=BxHiIII", 0, 0, netlink.index(PORT), 0x10001, 0x10000, 0)
    with netlink.Netlink() as socket_, pytest.raises(netlink.NetlinkError, match="No such file"):
        socket_.request(netlink.RTM_GETTCLASS, 0, asked)
    assert qdisc.classes(PORT) == []
    qdisc.delete_qdisc(PORT, 0x10000, qdisc.ROOT)


def main() -> None:
    listening = build()
    ask_for_a_class()
    switch = backends.load("netem", {f"switch:{PORT}": PORT}, {})
    before = qdisc.qdiscs(PORT)

    def put(what: str, value: int | str) -> None:
        assert switch.unavailable(what) == "", switch.unavailable(what)
        switch.apply(PORT, what, value)
        assert switch.read(PORT, what) == value, (what, value, switch.read(PORT, what))

    for rate, delay in ((10**9, 10**6), (10**8, 123_457), (10**10, 0), (40 * 10**9, 10**7 + 1)):
        put("rate", rate)
        put("delay", delay)
        for _ in range(2):
            arrived = burst(listening, 20)
            assert len(arrived) == 20, len(arrived)
            late = [at - delay - nth * PACKET * 8 * 10**9 // rate for nth, at in enumerate(arrived, 1)]
            assert all(0 <= one < CLOCK_NS for one in (late if rate < 10**10 else late[:1])), (rate, delay, late)
        print(f"{rate} bit/s, {delay} ns: {min(late)} to {max(late)} ns late")
    put("rate", 10**8)
    put("delay", 0)
    put("buffer", 10 * PACKET)
    assert len(burst(listening, 40)) == 11
    put("delay", 10**6)
    got = len(burst(listening, 40))
    assert got == 11 + -(-(10**8 * 10**6 // (8 * 10**9)) // PACKET), got
    assert "buffer" in switch.describe()
    assert switch.counters()[0]["drops"] == 29 + 40 - got, switch.counters()
    assert switch.unavailable("ecn_threshold") != ""
    for what in ("buffer", "delay", "rate", "ecn_threshold"):
        switch.apply(PORT, what, UNSET[what])
        assert switch.read(PORT, what) == UNSET[what]
    assert [(q.kind, q.handle) for q in qdisc.qdiscs(PORT)] == [(q.kind, q.handle) for q in before]
    print("the buffer holds what it should, and all is as before")


if __name__ == "__main__":
    main()
