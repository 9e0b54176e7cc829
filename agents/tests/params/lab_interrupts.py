# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: a host's NIC waits for more packets as it was set, and the host is late as it was set.

Datagrams go from a host (namespace `near`) to another one, `far`, at known times.  The times of their arrivals are
exact, so what is asserted of them are numbers, not tolerances of a clock.  Prints one line a check.
"""

from __future__ import annotations

import ctypes
import socket
import statistics
import struct
import subprocess
import time
from pathlib import Path

import pytest
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

from agents.tests import lab_hosts

SO_TIMESTAMPNS = 35
PR_SET_TIMERSLACK = 29
SO_RCVBUFFORCE = 33
SO_TXTIME = 61
NEAR, FAR = Entity("near", "host", ("eth0",)), Entity("far", "host", ("eth0",))
US = 1000
RESTART = Path("/sys/module/testctl_interrupts/parameters/restart")


def exact_sleeps() -> None:
    """Without a slack of 50 µs."""
    assert ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1) == 0


def build() -> tuple[socket.socket, socket.socket]:
    """Two hosts on one wire; a socket in `near`, one in `far`; this process stays in `far`."""
    lab_hosts.two_hosts()
    lab_hosts.enter("near")
    subprocess.run(["ethtool", "-K", "eth0", "tso", "off", "tx-tcp6-segmentation", "off"], check=True)
    sending = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    lab_hosts.enter("far")
    listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listening.bind(("10.0.0.2", 9))
    listening.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    listening.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    listening.setblocking(False)
    return sending, listening


def put(name: str, value: Value) -> None:
    lab_hosts.put(FAR, name, value)


class Wire:
    def __init__(self) -> None:
        self.sending, self.listening = build()

    def delays(self, gaps_us: list[int]) -> tuple[list[int], list[int]]:
        """Send a datagram after each gap: how late each arrived, and when each was sent, in ns."""
        sent = []
        for number, gap in enumerate(gaps_us):
            if gap:
                time.sleep(gap / 1e6)
            self.sending.sendto(struct.pack("=IQ", number, time.time_ns()), ("10.0.0.2", 9))
        time.sleep(0.5)
        late = []
        for number in range(len(gaps_us)):
            data, extra, _, _ = self.listening.recvmsg(64, 64)
            place, at = struct.unpack("=IQ", data)
            assert place == number, "a packet has overtaken another one"
            seconds, ns = struct.unpack("=qq", extra[0][2][:16])
            sent.append(at)
            late.append(seconds * 10**9 + ns - at)
        return late, sent


def check_coalescing(wire: Wire) -> None:
    """Packets at 0, 10, 20, 30, 200 µs: each waits until 50 µs after the first one of its batch, or for the third."""
    gaps = [1000, 10, 10, 10, 170]
    early, _ = wire.delays(gaps)
    assert max(early) < US, early
    put("coalesce_rx", 50 * US)
    late, sent = wire.delays(gaps)
    arrived = [at + one for at, one in zip(sent, late, strict=True)]
    assert [round(at - arrived[0], -4) for at in arrived] == [0, 0, 0, 0, 200 * US], late
    assert all(50 * US <= late[n] < 51 * US for n in (0, 4)), late
    put("coalesce_rx_frames", 3)
    late, _ = wire.delays(gaps)
    waited = [one // (10 * US) for one in late]
    assert waited == [2, 1, 0, 5, 5], late
    put("coalesce_rx_frames", 1)
    assert max(wire.delays(gaps)[0]) < US
    put("coalesce_rx_frames", 0)
    put("coalesce_rx", 0)
    with pytest.raises(TestbedError, match="coalesce_rx_frames: want 8 on eth0"):  # packets would wait for ever
        registry.module("host", "coalesce_rx_frames").apply(FAR, "coalesce_rx_frames", 8)
    assert registry.module("host", "coalesce_tx").unavailable(FAR, "coalesce_tx") == (
        "device eth0 (veth) has no send coalescing by time"
    )


def check_distributions(wire: Wire, packets: int = 3000) -> None:
    """Apart, each packet is an interrupt: the delays have the distribution, mean and tail that were asked for."""
    put("jitter", 20 * US)
    apart = [400] * packets
    for distribution in ("constant", "uniform", "exponential"):
        put("jitter_distribution", distribution)
        late = sorted(wire.delays(apart)[0])
        mean, median = statistics.mean(late), late[packets // 2]
        print(distribution, "mean", mean, "median", median, "least", late[0], "most", late[-1])
        assert abs(mean - 20 * US) < 1.5 * US, mean
        want = {"constant": (20, 20, 20), "uniform": (0, 20, 40), "exponential": (0, 13.86, 20 * 8)}[distribution]
        assert abs(median - want[1] * US) < 1.5 * US, median
        assert want[0] * US <= late[0] < (want[0] + 1) * US, late[0]
        assert abs(late[-1] - want[2] * US) < (want[2] / 4 + 1) * US, late[-1]
    put("jitter_tail_every", 50)
    put("jitter_tail", 300 * US)
    late = sorted(wire.delays([1500] * packets)[0])
    long = sum(one > 170 * US for one in late) / packets
    print("longer than 170 us:", long)
    assert 0.007 < long < 0.017, long  # a 50th, of which exp(-150 / 300) and a little more


def check_seeds(wire: Wire) -> None:
    """The same seed gives the same times, and neither what passed before nor another host counts."""
    put("jitter_tail", 0)
    put("jitter", 50 * US)
    RESTART.write_text("7")
    first = wire.delays([1000] * 20)[0]
    wire.delays([1000] * 5)
    RESTART.write_text("7")
    again = wire.delays([1000] * 20)[0]
    close = [abs(a - b) < US for a, b in zip(first, again, strict=True)]
    assert all(close), (first, again)
    put("jitter_seed", 2)
    RESTART.write_text("7")
    other = wire.delays([1000] * 20)[0]
    assert sum(abs(a - b) < US for a, b in zip(first, other, strict=True)) < 5, (first, other)
    put("jitter_seed", 1)
    elsewhere = Entity("else", "host", ("eth0",))
    registry.module("host", "jitter").apply(elsewhere, "jitter", 50 * US)
    RESTART.write_text("7")
    other = wire.delays([1000] * 20)[0]
    assert sum(abs(a - b) < US for a, b in zip(first, other, strict=True)) < 5, (first, other)


def check_timer_set_anew(wire: Wire) -> None:
    """A timer of fq that is set for a later packet while the host is late for an earlier one is late then, too."""
    lab_hosts.enter("near")
    subprocess.run(["tc", "qdisc", "replace", "dev", "eth0", "root", "fq"], check=True)
    lab_hosts.put(NEAR, "jitter_distribution", "constant")
    lab_hosts.put(NEAR, "jitter", 100 * US)
    wire.sending.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("=iI", time.CLOCK_MONOTONIC, 0))
    begin = time.monotonic_ns() + 1000 * US
    for wait_us, leaves in ((0, begin), (1060, begin + 2000 * US)):
        time.sleep(wait_us / 1e6)
        when = [(socket.SOL_SOCKET, SO_TXTIME, struct.pack("=Q", leaves))]
        wire.sending.sendmsg([b"timed"], when, 0, ("10.0.0.2", 9))
    time.sleep(0.01)
    lab_hosts.put(NEAR, "jitter", 0)
    subprocess.run(["tc", "qdisc", "delete", "dev", "eth0", "root"], check=True)
    lab_hosts.enter("far")
    began = begin + time.time_ns() - time.monotonic_ns()
    stamps = [struct.unpack("=qq", wire.listening.recvmsg(64, 64)[1][0][2][:16]) for _ in range(2)]
    first, second = (seconds * 10**9 + ns - began for seconds, ns in stamps)
    print("fq's timer: packets left", first, "and", second)
    assert 55 * US < first < 65 * US  # the second packet has the queue looked at
    assert 2100 * US <= second < 2115 * US


def check_batches(wire: Wire) -> None:
    """Packets that are closer than the host is late arrive in batches, in order."""
    put("jitter_distribution", "constant")
    put("jitter", 100 * US)
    late, sent = wire.delays([1000] + [20] * 99)
    arrived = {at + one for at, one in zip(sent, late, strict=True)}
    assert 15 <= len(arrived) <= 21, len(arrived)
    put("jitter", 0)
    assert max(wire.delays([1000] * 5)[0]) < US


def main() -> None:
    wire = Wire()
    exact_sleeps()
    subprocess.run(["mount", "-t", "sysfs", "sys", "/sys"], check=True)
    check_timer_set_anew(wire)
    for gro in (False, True):
        put("gro", gro)
        check_coalescing(wire)
        check_batches(wire)
        put("jitter_distribution", "exponential")
    check_distributions(wire)
    check_seeds(wire)
    print("interrupts are as late as they should be")


if __name__ == "__main__":
    main()
