# SPDX-License-Identifier: Apache-2.0
"""Kernels of their own for the hosts and switches of a lab: one virtual time, whatever the machine does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from testctl.core.point import PointSpec
from testctl.execution.point import measure
from testctl.plan import load_plan
from testctl.records import Records
from testctl.results import PointResult
from testctl.testbeds.lab import LabTestbed

from tests.cli_commands import TESTCTL
from tests.plan_runs import records_of

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
PAPER = Path(__file__).parents[1] / "plans" / "dctcp_htb.yaml"
APART = "testctl_links.apart=1"
"""What hosts of one kernel share by being in one does not count (lab/kernel/lab_links.h)."""


def pair(cc: str = "cubic", delay: str = "5us", offload: str = "off", mtu: str = "1500") -> str:
    return PAIR.replace("CC", cc).replace("DELAY", delay).replace("OFFLOAD", offload).replace("MTU", mtu)


def run(text: str, where: Path, *parameters: str) -> PointResult:
    points = load_plan(text.encode()).points
    lab = replace(LabTestbed.for_points(points, commands=True), parameters=parameters)
    return measure(lab, points[0], where, keep_captures=False)


def of(result: PointResult) -> Records:
    assert (result.verdict, result.reason) == ("pass", "")
    return records_of(result)


@contextmanager
def machine_in_the_way(seed: int) -> Iterator[None]:
    """Processes that keep all processors busy; the lab's kernels stop now and then, and come up in any order."""
    pids = []
    for _ in range(2 * (os.cpu_count() or 1)):
        if (pid := os.fork()) == 0:
            while True:
                pass
        pids.append(pid)
    over = threading.Event()
    thread = threading.Thread(target=_stop_now_and_then, args=(random.Random(seed), over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _stop_now_and_then(drawn: random.Random, over: threading.Event) -> None:
    seen: set[int] = set()
    while not over.wait(0.01):
        kernels = kernels_of(os.getpid())
        fresh = set(kernels) - seen
        seen |= fresh
        if kernels:
            with suppress(ProcessLookupError):
                os.kill(pid := drawn.choice(kernels), signal.SIGSTOP)
                over.wait(drawn.uniform(0, 0.5 if fresh else 0.05))
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("cc", "delay", "offload", "mtu"),
    [("cubic", "5ms", "off", "9000"), pytest.param("dctcp", "5us", "on", "1500", marks=pytest.mark.long)],
)
def test_packets_are_those_of_one_kernel_and_repeat_whatever_the_machine_does(
    tmp_path: Path, cc: str, delay: str, offload: str, mtu: str
) -> None:
    text = pair(cc, delay, offload, mtu)
    assert_as_one_kernel(text, tmp_path)
    once = of(run(text.replace("ALONE", "own"), tmp_path / "once"))
    with machine_in_the_way(1):
        again = of(run(text.replace("ALONE", "own"), tmp_path / "again"))
    assert once.digest() == again.digest()


def assert_as_one_kernel(text: str, where: Path) -> None:
    one = of(run(text.replace("ALONE", "shared"), where / "one", APART))
    each = of(run(text.replace("ALONE", "own"), where / "each", APART))
    two = of(run(text.replace("all, partition, ALONE", "switches, partition, of-switches"), where / "two", APART))
    assert one.packets.num_rows > 100
    assert one.digest() == each.digest() == two.digest()


def test_a_managed_queue_a_changing_link_and_ipv6_pass_between_kernels_too(tmp_path: Path) -> None:
    assert_as_one_kernel(DUMBBELL, tmp_path)
    four = of(run(DUMBBELL.replace("ALONE", "own"), tmp_path / "four"))
    assert four.counters.keys() == {"sender", "receiver", "left", "right"}


@pytest.mark.long
def test_every_point_of_the_papers_plan_has_the_packets_of_one_kernel(tmp_path: Path) -> None:
    """With all that its sender, receiver and switch do: HTB that marks, GRO's timers, TSO, three receivers' ACKs."""
    text, _, _ = PAPER.read_text(encoding="utf-8").replace("duration, 1s", "duration, 50ms").partition("\nexpect:")
    of_one, of_three = (
        load_plan(text.replace("tuples:\n", f"tuples:\n  - [all, partition, {partition}]\n").encode()).points
        for partition in ("shared", "own")
    )
    lab = replace(LabTestbed.for_points(of_three), parameters=(APART,))
    for number, (one, three) in enumerate(zip(of_one, of_three, strict=True)):
        expected = of(measure(lab, one, tmp_path / f"{number}-one", keep_captures=False))
        records = of(measure(lab, three, tmp_path / f"{number}-three", keep_captures=False))
        assert records.digest() == expected.digest(), number


def test_more_than_the_rings_hold_passes_both_ways(tmp_path: Path) -> None:
    """Two kernels that wait for space in each other's ring read their own meanwhile, and what is no zeros arrives."""
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
  - [flows, verify, on]
  - [flows, duration, 40ms]
"""
    assert of(run(text, tmp_path / "once")).digest() == of(run(text, tmp_path / "again")).digest()


def test_why_one_kernel_can_not_go_on_is_the_points_reason(tmp_path: Path) -> None:
    text = pair().replace("ALONE", "own").replace("40ms", "1s") + "  - [bulk, generator, iperf3]\n"
    (point,) = load_plan(text).points
    lab = replace(LabTestbed.for_points([point]), prepare=with_part_of_a_second)
    result = measure(lab, point, tmp_path, keep_captures=False)
    assert (result.verdict, result.reason) == (
        "broken",
        "agent sender: iperf3 client: duration: want whole seconds; got 40000000 ns",
    )


def test_an_idle_kernel_says_so_when_all_have_joined(tmp_path: Path) -> None:
    """Each program whose standard error is closed takes 1 us of the time before, of the kernel that it is in."""
    text = """
topology: {star: {hosts: 3}}
flows: {page: h1 -> h2, bulk: h1 -> h2}
groups: {busy: [h1, h2, switch]}
tuples:
  - [switch, delay, 1ms]
  - [busy, partition, busy]
  - [h3, partition, own]
  - [page, generator, command]
  - [page, client, "true"]
  - [page, server, "sh -c 'for i in $(seq 9); do sleep 50 2>&- & done; exec python3 -m http.server {server_port}'"]
  - [bulk, bytes, 10kB]
"""
    assert of(run(text, tmp_path)).packets.num_rows > 0


def with_part_of_a_second(spec: PointSpec) -> PointSpec:
    (flow,) = spec.flows
    return replace(spec, flows=(replace(flow, options={**flow.options, "duration": 40_000_000}),))


def test_the_logs_of_all_kernels_are_in_one_file(tmp_path: Path) -> None:
    (point,) = load_plan(pair().replace("ALONE", "own")).points
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
    every = psutil.process_iter(["name", "ppid"])
    return sorted(one.pid for one in every if one.info == {"name": "linux", "ppid": pid})


def test_a_kernel_that_dies_in_a_point_breaks_it_and_the_others_are_ended(tmp_path: Path) -> None:
    text = pair().replace("ALONE", "own").replace("40ms", "100s")
    results: list[PointResult] = []
    thread = threading.Thread(target=lambda: results.append(run(text, tmp_path / "raw")))
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


@pytest.mark.parametrize(
    ("taken", "code", "says"),
    [("44k", 0, "1 pass"), ("64k", 3, "/dev/shm: want space for the semaphores of workers; No space left on device")],
)
def test_a_full_dev_shm(tmp_path: Path, taken: str, code: int, says: str) -> None:
    """The kernels' memory is elsewhere then, but not the semaphores of workers."""
    inside = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces for users here")
    plan = tmp_path / "plan.yaml"
    plan.write_text(pair().replace("ALONE", "own"), encoding="utf-8")
    there = f'mount -t tmpfs -o size=64k none /dev/shm; head -c {taken} /dev/zero > /dev/shm/other; exec "$@"'
    argv = [*TESTCTL, "run", str(plan), "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [*inside, "sh", "-ec", there, "sh", *argv],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout + done.stderr
