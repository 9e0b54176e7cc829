# SPDX-License-Identifier: Apache-2.0
"""Kernels of their own for the hosts and switches of a lab: one virtual time, whatever the machine does."""

from __future__ import annotations

import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from testctl.core.point import PointSpec
from testctl.execution.point import measure
from testctl.plan import load_plan
from testctl.records import Records
from testctl.results import PointResult
from testctl.testbeds.lab import LabTestbed

pytestmark = pytest.mark.lab

PAIR = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, CC]
  - [hosts, tcp_ecn, 1]
  - [switch, rate, 1gbit]
  - [switch, delay, DELAY]
  - [switch, buffer, 100kB]
  - [switch, fate, drop data 30 of bulk]
  - [all, mtu, MTU]
  - [sender, tso, OFFLOAD]
  - [receiver, gro, OFFLOAD]
  - [all, partition, ALONE]
  - [bulk, duration, 40ms]
"""
DUMBBELL = """
topology: dumbbell
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [bulk, family, 6]
  - [left:right, rate, 50mbit]
  - [left:right, aqm, codel]
  - [left-right, delay, "2ms; 50ms 1ms"]
  - [left:right, delay, 2ms]
  - [left:sender, delay, 1us]
  - [right:receiver, delay, 1us]
  - [all, partition, ALONE]
  - [flows, duration, 100ms]
"""
READING_NS = 256
"""By which a program that reads the clock moves it, for all hosts of its kernel."""


def run(text: str, where: Path) -> PointResult:
    points = load_plan(text.encode()).points
    return measure(LabTestbed.for_points(points), points[0], where, keep_captures=False)


def of(result: PointResult) -> Records:
    assert result.records is not None, result.reason
    assert (result.verdict, result.reason) == ("pass", "")
    return result.records


@contextmanager
def busy_machine() -> Iterator[None]:
    """Processes that keep all processors busy, and leave the lab's kernels to be run in any order."""
    pids = []
    for _ in range(2 * (os.cpu_count() or 1)):
        if (pid := os.fork()) == 0:
            while True:
                pass
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def assert_same_packets(records: Records, others: Records) -> None:
    """But for what the hosts of one kernel share (ADR 14): the offset of timestamps, the clock that programs move by
    reading it, and buffers, which Linux merges less while the sender has them too, so that windows differ.
    """
    but = ("time_ns", "tsval", "tsecr", "window")
    columns = [name for name in records.packets.column_names if name not in but]
    assert records.packets.num_rows > 100
    assert records.packets.select(columns).equals(others.packets.select(columns))
    late = np.abs(records.column("time_ns") - others.column("time_ns"))
    assert late.max() <= READING_NS


@pytest.mark.parametrize(
    ("cc", "delay", "offload", "mtu"), [("cubic", "5ms", "off", "9000"), ("dctcp", "5us", "on", "1500")]
)
def test_packets_are_those_of_one_kernel_and_repeat_on_a_busy_machine(
    tmp_path: Path, cc: str, delay: str, offload: str, mtu: str
) -> None:
    text = PAIR.replace("CC", cc).replace("DELAY", delay).replace("OFFLOAD", offload).replace("MTU", mtu)
    one = of(run(text.replace("ALONE", "shared"), tmp_path / "one"))
    three = of(run(text.replace("ALONE", "own"), tmp_path / "three"))
    two = of(run(text.replace("all, partition, ALONE", "switch, partition, own"), tmp_path / "two"))
    with busy_machine():
        again = of(run(text.replace("ALONE", "own"), tmp_path / "again"))
    assert again.digest() == three.digest()
    assert_same_packets(three, one)
    assert_same_packets(two, one)


def test_a_managed_queue_a_changing_link_and_ipv6_pass_between_kernels_too(tmp_path: Path) -> None:
    one = of(run(DUMBBELL.replace("ALONE", "shared"), tmp_path / "one"))
    four = of(run(DUMBBELL.replace("ALONE", "own"), tmp_path / "four"))
    assert_same_packets(four, one)
    assert four.counters.keys() == one.counters.keys() == {"sender", "receiver", "left", "right"}


def test_more_than_the_rings_hold_passes_both_ways(tmp_path: Path) -> None:
    """Two kernels that wait for space in each other's ring read their own meanwhile."""
    text = """
topology: pair
flows: {bulk: sender -> receiver, back: receiver -> sender}
tuples:
  - [hosts, initcwnd, 1000]
  - [hosts, tcp_rmem, "1000000 6000000 6000000"]
  - [hosts, tcp_wmem, "1000000 6000000 6000000"]
  - [switch, rate, 10gbit]
  - [switch, delay, 10ms]
  - [switch, buffer, 10MB]
  - [all, partition, own]
  - [flows, duration, 40ms]
"""
    assert of(run(text, tmp_path / "once")).digest() == of(run(text, tmp_path / "again")).digest()


def test_why_one_kernel_can_not_go_on_is_the_points_reason(tmp_path: Path) -> None:
    text = PAIR.replace("CC", "cubic").replace("DELAY", "5us").replace("OFFLOAD", "off").replace("MTU", "1500")
    text = text.replace("ALONE", "own") + "  - [bulk, generator, iperf3]\n"
    result = run(text, tmp_path / "raw")
    assert (result.verdict, result.reason) == (
        "broken",
        "agent sender: iperf3 client: duration: want whole seconds; got 40000000 ns",
    )


def test_the_logs_of_all_kernels_are_in_one_file(tmp_path: Path) -> None:
    text = PAIR.replace("CC", "cubic").replace("DELAY", "5us").replace("OFFLOAD", "off").replace("MTU", "1500")
    (point,) = load_plan(text.replace("ALONE", "own").encode()).points
    lab = LabTestbed.for_points([point])
    lab.run(point, tmp_path)
    assert not list(tmp_path.glob("*kernel.log"))
    replace(lab, prepare=with_kernel_log).run(point, tmp_path)
    assert [path.name for path in tmp_path.glob("*kernel.log")] == ["kernel.log"]
    log = (tmp_path / "kernel.log").read_text(encoding="utf-8")
    assert [line for line in log.splitlines() if line.startswith("# ")] == ["# sender", "# receiver", "# switch"]
    assert log.count("Linux version") == 3


def with_kernel_log(spec: PointSpec) -> PointSpec:
    return replace(spec, kernel_log=True)


def kernels_of(pid: int) -> list[int]:
    """The processes of lab kernels that a process has started, in the order of their start."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)", path.read_text(encoding="ascii").strip(), re.S).groups()  # type: ignore[union-attr]
        except OSError:
            continue
        if name == "linux" and int(rest.split()[1]) == pid:
            found.append(int(path.parent.name))
    return sorted(found)


def test_a_kernel_that_dies_in_a_point_breaks_it_and_the_others_are_ended(tmp_path: Path) -> None:
    text = PAIR.replace("CC", "cubic").replace("DELAY", "5us").replace("OFFLOAD", "off").replace("MTU", "1500")
    results: list[PointResult] = []
    thread = threading.Thread(
        target=lambda: results.append(run(text.replace("ALONE", "own").replace("40ms", "100s"), tmp_path / "raw"))
    )
    thread.start()
    until = time.monotonic() + 120
    while len(pids := kernels_of(os.getpid())) < 3 or not list(
        Path(tempfile.gettempdir()).glob("testctl-lab-*/1/traffic")
    ):
        assert thread.is_alive(), results
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(pids[1], signal.SIGKILL)
    thread.join(60)
    assert not thread.is_alive()
    assert results[0].verdict == "broken"
    assert "the kernel of receiver: the lab ended without a result (exit -9)" in results[0].reason
    assert kernels_of(os.getpid()) == []


@pytest.mark.long
def test_forty_kernels_at_once_repeat(tmp_path: Path) -> None:
    text = """
topology: {star: {hosts: 39}}
flows: {in1: h1 -> h39, in2: h2 -> h39, out: h39 -> h3}
tuples:
  - [hosts, cc, cubic]
  - [switch, rate, 1gbit]
  - [switch, buffer, 100kB]
  - [switch, delay, 50us]
  - [all, partition, own]
  - [flows, duration, 20ms]
"""
    once, again = (of(run(text, tmp_path / name)).digest() for name in ("once", "again"))
    assert once == again
