# SPDX-License-Identifier: Apache-2.0
"""Runs inside a lab: ports of the eBPF switch are ideal links, packet by packet, and leave nothing behind."""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.bpf import load
from testctl_agent.collect import link_origin, telemetry
from testctl_agent.network import qdisc
from testctl_agent.spec import schedule, trace
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.units import Bytes, Duration, Rate
from testctl_agent.switch import backend as backends
from testctl_agent.switch import ebpf_ports
from testctl_agent.switch.backend import UNSET, Backend
from testctl_agent.tasks.lab_recorder import LabRecorder

from agents.tests import lab_hosts
from agents.tests.switch.changing_link import ChangingLink, TraceLink
from agents.tests.switch.ideal_link import Link

SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
LATE_NS = 1000
TOLD = ("arrival_ns", "departure_ns", "queue_bytes", "wire_bytes", "ingress_port", "egress_port", "verdict")
MODELS = (
    (0, 0, 0, 0),
    (0, 12_345, 0, 0),
    (3 * 10**9, 0, 0, 24),
    (10**10, 5000, 0, 0),
    (10**6, 0, 30_000, 0),
    (10**9, 10**6, 3000, 24),
    (7_777_777_777, 1, 2000, 20),
    (10**8, 10**7, 0, 0),
)
"""rate, delay, buffer, framing"""
MS = 10**6
RATES, DELAYS, DOWNS = (
    [(0, 10**8), (2 * MS, 10**6), (30 * MS, 0), (40 * MS, None), (41 * MS, 10**9)],
    [(0, 5 * MS), (20 * MS, MS)],
    [(35 * MS, 36 * MS), (45 * MS, 50 * MS)],
)
JITTER = "normal 2ms 1ms seed 7"
LARGEST = [(0, None), (15 * MS, 1400)]
TRACE_MS = [0, 1, 1, 1, 4, 9]
BY_KERNEL, BY_PROGRAM = telemetry.LAB_FILE, Path("/nonesuch")


def build() -> tuple[socket.socket, socket.socket]:
    """Two hosts and a switch, where this process stays: a socket at each host."""
    sockets = []
    lab_hosts.add("switch", "a", "b")
    for name, mac in zip("ab", MACS, strict=True):
        lab_hosts.ip(f"-n switch link add to_{name} type veth peer name eth0 address {mac} netns {name}")
        lab_hosts.ip(f"-n switch link set to_{name} up")
        lab_hosts.ip(f"-n {name} link set eth0 up")
        lab_hosts.enter(name)
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
        one.bind(("eth0", 0x88B5))
        one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        one.setblocking(False)
        sockets.append(one)
    lab_hosts.enter("switch")
    return sockets[0], sockets[1]


def received(at: socket.socket) -> list[tuple[int, int, int]]:
    """(number, bytes, when by CLOCK_REALTIME) of all packets that came."""
    found = []
    while True:
        try:
            data, extra, _, _ = at.recvmsg(4096, 64)
        except BlockingIOError:
            return found
        seconds, ns = struct.unpack("=qq", extra[0][2])
        found.append((struct.unpack_from("=I", data, 14)[0], len(data), seconds * 10**9 + ns))


def put(switch: Backend, port: str, what: str, value: int | str) -> None:
    assert switch.unavailable(what) == "", switch.unavailable(what)
    switch.apply(port, what, value)
    assert switch.read(port, what) == value, (what, value, switch.read(port, what))


Expected = Callable[[list[tuple[int, int]]], list[tuple[int | None, int, int]]]
"""(arrival, bytes) of each packet -> (when it arrives at its neighbour, None if never; what waited; verdict) of each"""


def constant(link: Link) -> Expected:
    def expected(came: list[tuple[int, int]]) -> list[tuple[int | None, int, int]]:
        found = [link.send(*one) for one in came]
        return [(at, depth, 2 if at is None else 0) for at, depth in found]

    return expected


def scheduled(origin: int) -> Expected:
    def expected(came: list[tuple[int, int]]) -> list[tuple[int | None, int, int]]:
        link = ChangingLink(RATES, DELAYS, DOWNS, 20_000, jitter=JITTER, largest=LARGEST)
        found = [link.send(now - origin, size) for now, size in came]
        return [
            (None if at is None else at + origin, depth, 0 if at is not None else 4 if lost else 2)
            for at, depth, lost in found
        ]

    return expected


def traced(origin: int) -> Expected:
    def expected(came: list[tuple[int, int]]) -> list[tuple[int | None, int, int]]:
        link = TraceLink(TRACE_MS, 50_000)
        found = [link.send(now - origin, size) for now, size in came]
        link.run(10**10)
        assert link.used < sum(size for _, size in came) // 1000, "most opportunities carry more than one packet"
        return [
            (None if number is None else link.left[number] + origin, depth, 2 if number is None else 0)
            for number, depth in found
        ]

    return expected


def exchange(
    ends: tuple[socket.socket, socket.socket], expect: Expected, rng: random.Random, where: Path, by: Path = BY_KERNEL
) -> tuple[int, int, int]:
    """Random packets over a port with this model, recorded by the kernel or a program.

    Returns (sent, dropped, most ns that one left late).
    """
    telemetry.LAB_FILE = by
    task = telemetry.task({"devices": "to_a,to_b"}, where)
    task.start()
    head = bytes.fromhex((MACS[1] + MACS[0]).replace(":", "")) + b"\x88\xb5"
    sizes = []
    for number in range(400):
        size = rng.choice((60, 64, 1514, rng.randint(60, 1514)))
        sizes.append(size)
        ends[0].send((head + struct.pack("=I", number)).ljust(size, b"\0"))
        if rng.random() < 0.5:
            time.sleep(rng.choice((1e-6, 1e-5, 1e-4)) * rng.random())
    time.sleep(5)
    task.stop()
    said = task.result()
    assert (said["records"], said["lost"]) == (400, 0), said
    step = -(-max(f["offset"] + f["bytes"] for f in said["layout"]) // 8) * 8
    places = {f["name"]: (f["offset"], f["offset"] + f["bytes"]) for f in said["layout"]}
    data = (where / telemetry.FILE).read_bytes()
    records = [
        [int.from_bytes(data[step * n :][slice(*places[name])], "little") for name in TOLD] for n in range(len(sizes))
    ]
    expected = []
    told = expect([(record[0], size) for record, size in zip(records, sizes, strict=True)])
    for number, (size, record, (at, depth, why)) in enumerate(zip(sizes, records, told, strict=True)):
        _, departure, queue, wire, came, left, verdict = record
        assert (wire, came, left) == (size, 1, 2), (number, wire, came, left)
        assert (departure, queue, verdict) == (at or 0, depth, why), (number, at, depth, why, record)
        if at:
            expected.append((number, size, at + said["clock_offset_ns"]))
    got = received(ends[1])
    expected.sort(key=lambda one: one[2])
    assert [one[:2] for one in got] == [one[:2] for one in expected]
    late = [one[2] - want[2] for one, want in zip(got, expected, strict=True)]
    assert all(-1 <= one < LATE_NS for one in late), sorted(late)
    return len(got), len(sizes) - len(got), max(late)


def refuse(switch: Backend) -> None:
    """What can't be had is refused in words and changes nothing."""
    for port, what, value, words in (
        ("to_c", "rate", 10**9, "port to_c, rate: want one of the ports to_a, to_b"),
        ("to_b", "ecn_threshold", 524_288, "19 bits in P4: at most 524287 bytes"),
        ("to_b", "buffer", 2**31 + 1, "at most 2147483648 bytes can wait"),
    ):
        with pytest.raises(ApplyError, match=words):
            switch.apply(port, what, value)
    put(switch, "to_b", "buffer", 30_000)
    with pytest.raises(ApplyError, match="port to_b, ecn_threshold: want 30001; a threshold beyond the buffer"):
        switch.apply("to_b", "ecn_threshold", 30_001)
    put(switch, "to_b", "ecn_threshold", 30_000)
    with pytest.raises(ApplyError, match="a threshold beyond the buffer"):
        switch.apply("to_b", "buffer", 29_999)
    assert switch.read("to_b", "buffer") == 30_000
    for what in ("ecn_threshold", "buffer"):
        put(switch, "to_b", what, UNSET[what])


def refuse_recorders(where: Path) -> None:
    """What the kernel's recorder of a ring does not take, or can't write, is an error in words."""

    def refused(recorder: LabRecorder) -> str:
        with pytest.raises(TestbedError) as error:
            recorder.start()
        return str(error.value)

    def recorder(words: str, output: str = "ring") -> LabRecorder:
        return LabRecorder("who", BY_KERNEL, (words,), where, output, dict)

    assert refused(recorder("")) == f"who:  > {where}/ring: Invalid argument"
    assert refused(recorder("ring")) == f"who: ring > {where}/ring: Invalid argument"
    assert refused(recorder("999")) == f"who: 999 > {where}/ring: Bad file descriptor"
    with ebpf_ports.attached("to_a") as maps:
        assert maps is not None
        array, ring = str(maps["telemetry_on"]), str(maps["telemetry"])
        assert refused(recorder(array)) == f"who: {array} > {where}/ring: Wrong medium type"
        assert refused(recorder(ring, "no/ring")) == f"who: {ring} > {where}/no/ring: No such file or directory"
        first = recorder(ring)
        first.start()
        assert refused(recorder(ring, "again")) == f"who: {ring} > {where}/again: Device or resource busy"
        first.stop()
        assert first.result() == {"records": 0, "missed": 0, "bytes": 0, "error": 0}
    assert (where / "ring").read_bytes() == b""


def full(end: socket.socket) -> None:
    """Where the file's disk is full, packets pass, and the records that found no space are counted as lost."""
    number, disk = 10_000, Path("/dev/full")
    telemetry.LAB_FILE, usual = BY_KERNEL, telemetry.FILE
    telemetry.FILE = str(disk)
    task = telemetry.task({"devices": "to_a,to_b"}, disk.parent)
    task.start()
    telemetry.FILE = usual
    for _ in range(number):
        end.send(bytes.fromhex((MACS[1] + MACS[0]).replace(":", "")) + b"\x88\xb5" + bytes(46))
    time.sleep(1)
    task.stop()
    with pytest.raises(TestbedError, match=r"^telemetry: /dev/full can't be written: No space left on device$"):
        task.result()
    with ebpf_ports.attached("to_a") as maps:
        assert maps is not None
        (lost,) = struct.unpack("=Q", load.read_array(maps["telemetry_lost"], 8))
    assert 0 < lost < number


def change(ends: tuple[socket.socket, socket.socket], switch: Backend, rng: random.Random, where: Path) -> None:
    """Links that change do so at the times that count from the start of the traffic, which a collector gives."""
    rates = schedule.show([schedule.Step(*one) for one in RATES], Rate)
    delays = schedule.show([schedule.Step(*one) for one in DELAYS], Duration)
    cell = trace.value_of("".join(f"{ms}\n" for ms in TRACE_MS).encode())
    down = schedule.show_down(DOWNS)
    most = schedule.show([schedule.Step(*one) for one in LARGEST], Bytes)
    all_of_it = {"largest": most, "rate": rates, "delay": delays, "down": down, "jitter": JITTER, "buffer": 20_000}
    for name, values, expected in (
        ("schedule", all_of_it, scheduled),
        (
            "trace",
            {"rate": cell, "delay": 0, "down": "none", "jitter": "none", "largest": "none", "buffer": 50_000},
            traced,
        ),
    ):
        for what, value in (values | {"framing": 0}).items():
            put(switch, "to_b", what, value)
        task = link_origin.task({"devices": "to_a,to_b", "start_ns": time.time_ns()}, where)
        task.start()
        here = where / name
        here.mkdir()
        sent, dropped, late = exchange(ends, expected(task.result()["origin_ns"]), rng, here)
        assert min(sent, dropped) > 0, (sent, dropped)
        print(f"{name}: {sent} sent, {dropped} dropped, {late} ns late")
    for what in ("rate", "delay", "down", "jitter", "largest", "buffer"):
        put(switch, "to_b", what, UNSET[what])


def main() -> None:
    ends = build()
    before = {d: [(q.kind, q.handle) for q in qdisc.qdiscs(d)] for d in ("to_a", "to_b")}
    stations = {MACS[0]: "to_a", MACS[1]: "to_b"}
    with pytest.raises(TestbedError, match="device to_c: not in this network namespace"):
        backends.load("ebpf", {"switch:c": "to_c"}, {})
    devices = {"switch:a": "to_a", "switch:b": "to_b"}
    crashed = backends.load("ebpf", devices, stations)
    put(crashed, "to_b", "rate", 10**9)
    switch = backends.load("ebpf", devices, stations)  # as after a crash: what is there is taken away
    assert switch.read("to_b", "rate") == "none"
    refuse(switch)
    rng = random.Random(3)
    where = Path(os.environ["TESTCTL_OUT"])
    for nth, (rate, delay, buffer, framing) in enumerate(MODELS):
        for what, value in (("rate", rate), ("delay", delay), ("buffer", buffer), ("framing", framing)):
            put(switch, "to_b", what, value or UNSET[what])
        here = where / str(nth)
        here.mkdir(parents=True)
        by = (BY_KERNEL, BY_PROGRAM)[nth % 2]
        sent, dropped, late = exchange(ends, constant(Link(rate, delay, buffer, framing)), rng, here, by)
        assert bool(dropped) == bool(buffer), dropped
        print(f"{rate} bit/s, {delay} ns, {buffer} + {framing} bytes: {sent} sent, {dropped} dropped, {late} ns late")
        row = next(row for row in switch.counters() if (row["device"], row["kind"]) == ("to_b", "switch_port"))
    assert int(str(row["packets"])) + int(str(row["drops"])) == 8 * 400, row
    change(ends, switch, rng, where)
    refuse_recorders(where)
    full(ends[0])
    switch.close()
    assert {d: [(q.kind, q.handle) for q in qdisc.qdiscs(d)] for d in before} == before
    print("all is as before")


if __name__ == "__main__":
    main()
