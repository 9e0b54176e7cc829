# SPDX-License-Identifier: Apache-2.0
"""Faults of a rack: no host stays changed, no result is lost or duplicated, and the error states the reason.

The table "Faults, and what is left after each" of docs/testbeds.md says the same in prose.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testctl.testbeds.point_runner import drift

from plugins.rack.tests.rack.bed import PLAN, POINTS, Bed, eventually
from plugins.rack.tests.rack.faked import faked, needs_faketime

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]
STEPS = (
    "Attest begins", "Describe begins", "Apply begins", "Apply ended", "Start begins", "Start ended", "Wait begins",
    "Fetch begins", "Stop begins", "Restore begins", "Restore ended",
)  # fmt: skip
"""Before, between and after the calls of a point, in their order."""
ONE = ("--set", "bulk.cc=cubic")
"""Makes the plan one point."""
SLOW = ("--set", "bulk.rate=8mbit")
"""Makes the traffic of a point last two seconds."""


def whole_after(rack: Bed, *words: str, finished: int | None = None) -> None:
    """The rest of a run: it passes, and takes over what was finished before."""
    kept = [path for path in (rack.where / "results").glob("2*/points/*") if said(path) == "pass"]
    if finished is not None:
        assert len(kept) == finished
    summary = rack.whole("--resume", *words, points=1 if set(ONE) <= set(words) else POINTS)
    newest = (rack.where / "results" / "latest" / "points").resolve()
    reused = [path.name for path in newest.iterdir() if "reused_from" in (path / "verdict.json").read_text()]
    assert sorted(reused) == sorted({path.name for path in kept}), summary["resumed"]


def said(point: Path) -> str:
    """A point's verdict; "" while it has none."""
    path = point / "verdict.json"
    return str(json.loads(path.read_text(encoding="utf-8"))["verdict"]) if path.exists() else ""


def points(rack: Bed) -> list[dict[str, Any]]:
    """The points of the newest run that ended."""
    found: list[dict[str, Any]] = rack.summary()["points"]
    return found


def reasons(rack: Bed, verdict: str) -> list[str]:
    return [point["reason"] for point in points(rack) if point["verdict"] == verdict]


# What a machine does not support


def test_a_capability_that_is_missing(rack: Bed) -> None:
    """The point is skipped, and nothing is set for it."""
    rack.ends(rack.run(*ONE, "--set", "hosts.ring_rx=256"), 4)
    assert reasons(rack, "skip") == ["sender, ring_rx and receiver, ring_rx: device eth1 (veth) has no rings"]


def test_a_value_that_the_device_refuses(rack: Bed) -> None:
    rack.ends(rack.run(*ONE, "--set", "hosts.queues=64"), 3)
    (found,) = reasons(rack, "broken")
    assert "queues: want 64 on eth1; Invalid argument: requested channel count exceeds maximum" in found
    whole_after(rack, *ONE, finished=0)


def test_an_agent_that_may_not(rack: Bed) -> None:
    """An agent without CAP_NET_ADMIN: the point is broken, and what could be set is restored."""
    rack.kill("beta", signal.SIGTERM)
    rack.start("beta", "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    rack.ends(rack.run(*ONE), 3)
    (found,) = reasons(rack, "broken")
    assert f"host beta ({rack.listens('beta')})" in found
    assert "permitted" in found
    rack.restart_agents()
    whole_after(rack, *ONE, finished=0)


# Deaths


def test_an_agent_is_killed(rack: Bed) -> None:
    """At each step of a point, each time in another point of one run."""
    plan = rack.where / "long.yaml"
    plan.write_text(f"{PLAN}repeat: {len(STEPS) // 2 + 1}\n", encoding="utf-8")
    count = (len(STEPS) // 2 + 1) * POINTS
    process = rack.run(plan=plan)
    for step in STEPS:
        rack.reaches("sender Attest begins", process)
        if step != "Attest begins":
            rack.reaches(f"sender {step}", process)
        rack.kill("alpha")
        rack.start("alpha")
    rack.ends(process, 3)
    broken = reasons(rack, "broken")
    assert len(broken) >= len(STEPS) - 1  # after the last step the point may pass
    assert len(broken) + sum(point["verdict"] == "pass" for point in points(rack)) == count
    assert all("alpha" in reason for reason in broken), broken
    rack.whole("--resume", points=count, plan=plan)


def test_the_controller_is_killed(rack: Bed) -> None:
    """At each step of a point; its agents restore everything by themselves when their leases end."""
    before = rack.attest()
    for step in STEPS:
        process = rack.run("--resume", lease_s=3)
        rack.reaches(f"sender {step}", process)
        process.kill()
        process.communicate(timeout=120)
        assert eventually(rack.is_free)
        assert drift(before, rack.attest()) == [], step
    whole_after(rack, finished=0)


def test_the_controller_is_killed_in_its_second_point(rack: Bed) -> None:
    before = rack.attest()
    process = rack.run(lease_s=15)
    for _ in range(POINTS):
        rack.reaches("sender Apply ended", process)
    process.kill()
    process.communicate(timeout=120)
    assert drift(before, rack.attest())
    assert eventually(lambda: not drift(before, rack.attest()))
    assert eventually(rack.is_free)
    whole_after(rack, finished=1)


def test_the_controller_s_machine_sleeps(rack: Bed) -> None:
    """As a machine that is suspended: meanwhile its leases end and its hosts are restored; then the run goes on."""
    before = rack.attest()
    process = rack.run(*SLOW, lease_s=6)
    rack.reaches("sender Wait begins", process)
    asleep = [process.pid, *descendants(process.pid)]
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert eventually(rack.is_free)
        assert drift(before, rack.attest()) == []
    finally:
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
    rack.ends(process, 3)
    assert [point["verdict"] for point in points(rack)] == ["broken", "pass"]
    assert "lease" in reasons(rack, "broken")[0]
    whole_after(rack, *SLOW, finished=1)


def descendants(pid: int) -> list[int]:
    found = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, listed.read_text(encoding="ascii").split()):
            found += [child, *descendants(child)]
    return found


def test_interrupted_twice(rack: Bed) -> None:
    process = rack.run(*ONE, lease_s=3)
    rack.reaches("sender Start begins", process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    rack.ends(process, 130, -signal.SIGINT)
    assert eventually(rack.is_free)
    whole_after(rack, *ONE, finished=0)


def test_a_host_vanishes_and_returns(rack: Bed) -> None:
    process = rack.run(*ONE, lease_s=4)
    rack.reaches("receiver Start ended", process)
    rack.unplug("beta", "mgmt")
    rack.ends(process, 3)
    rack.unplug("beta", "mgmt", up=True)
    (found,) = reasons(rack, "broken")
    assert f"host beta ({rack.listens('beta')})" in found
    assert eventually(rack.is_free)
    whole_after(rack, *ONE, finished=0)


def test_a_host_loses_its_test_link(rack: Bed) -> None:
    """For a moment: the flow survives, the point does not count."""
    process = rack.run(*SLOW)
    rack.reaches("sender Wait begins", process)
    rack.reaches("sender Wait begins", process)  # the first one was the path's probe
    time.sleep(0.5)
    rack.unplug("beta", "eth1")
    time.sleep(0.5)
    rack.unplug("beta", "eth1", up=True)
    rack.ends(process, 3)
    (found,) = reasons(rack, "invalid")
    assert f"host beta ({rack.listens('beta')}): the link of eth1 went down or came up 2 times" in found
    whole_after(rack, *SLOW, finished=1)


def test_a_slow_agent(rack: Bed) -> None:
    """One that stands still for a while delays the point; one that stands still for good is given up."""
    process = rack.run(*ONE)
    rack.reaches("receiver Apply begins", process)
    rack.agents["beta"].send_signal(signal.SIGSTOP)
    time.sleep(3)
    rack.agents["beta"].send_signal(signal.SIGCONT)
    rack.ends(process, 0)
    shutil.rmtree(rack.where / "results")
    process = rack.run(*ONE, lease_s=4)
    rack.reaches("switch Start ended", process)  # later than the probes of the path, which would miss beta first
    rack.agents["beta"].send_signal(signal.SIGSTOP)
    rack.ends(process, 3)
    rack.agents["beta"].send_signal(signal.SIGCONT)
    (found,) = reasons(rack, "broken")
    assert f"host beta ({rack.listens('beta')})" in found
    assert eventually(rack.is_free)
    whole_after(rack, *ONE, finished=0)


def test_two_controllers_at_once(rack: Bed) -> None:
    """The second one's error names the holder of the rack, and it runs nothing; the first is not disturbed."""
    first = rack.run("--set", "bulk.rate=3mbit")  # so slow that the second one comes in time on a busy machine
    rack.reaches("sender Apply begins", first)
    told = rack.ends(rack.run("--results", "second"), 3)
    assert "leased to" in told
    assert ", process " in told
    assert not list((rack.where / "second").glob("*/points/*"))
    rack.ends(first, 0)
    assert [point["verdict"] for point in points(rack)] == ["pass"] * POINTS


def test_drift_makes_a_point_invalid(rack: Bed) -> None:
    """Somebody changes a host during a point."""
    process = rack.run()
    rack.reaches("receiver Apply ended", process)
    inside = ["ip", "netns", "exec", rack.node("beta").namespace]
    try:
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.tcp_retries2=9"], check=True)
        rack.ends(process, 3)
    finally:
        subprocess.run([*inside, "sysctl", "-qw", "net.ipv4.tcp_retries2=15"], check=True)
    (found,) = reasons(rack, "invalid")
    assert "tcp_retries2 was 15, is 9 after the point" in found
    whole_after(rack, finished=1)


@needs_faketime
def test_a_clock_steps(rack: Bed) -> None:
    """A clock that is wrong is refused; one that steps during a point makes it invalid."""
    rack.kill("alpha", signal.SIGTERM)
    rack.start("alpha", *faked("FAKETIME=+5s"))
    rack.ends(rack.run(*ONE), 3)
    found = re.findall(r"its clock is \+(\S+) s \(give or take (\S+) s\)", " ".join(reasons(rack, "broken")))
    assert found, points(rack)
    assert all(abs(float(off) - 5) <= float(error) + 0.01 for off, error in found)
    rack.kill("alpha", signal.SIGTERM)
    offset = rack.where / "offset"
    offset.write_text("+0s\n", encoding="ascii")
    rack.start("alpha", *faked(f"FAKETIME_TIMESTAMP_FILE={offset}", "FAKETIME_NO_CACHE=1"))
    process = rack.run(*ONE, *SLOW)
    rack.reaches("switch Start ended", process)
    offset.write_text("+2s\n", encoding="ascii")
    rack.ends(process, 3)
    found = reasons(rack, "invalid") + reasons(rack, "broken")
    assert any("its clock moved by" in reason for reason in found), found
    rack.restart_agents()
    whole_after(rack, *ONE, *SLOW, finished=0)


# Disks


@contextmanager
def small_disk(where: Path, size: str) -> Iterator[Path]:
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def resized(disk: Path, size: int) -> bool:
    """Whether a disk has another size now, and no less than is used."""
    argv = ["mount", "-o", f"remount,size={size}", str(disk)]
    return subprocess.run(argv, stderr=subprocess.DEVNULL, check=False).returncode == 0


def fill(disk: Path) -> None:
    """Fill a disk."""
    with (disk / "fill").open("ab", buffering=0) as out, pytest.raises(OSError, match="No space"):
        for _ in iter(lambda: out.write(bytes(4096)), None):
            pass


def test_an_agent_s_disk_is_full(rack: Bed) -> None:
    """Its journal can't be written: nothing is applied, and the error states why."""
    rack.kill("alpha", signal.SIGTERM)
    with small_disk(rack.where / "alpha" / "full", "64k") as full:
        rack.start("alpha", journal=str(full / "journal.jsonl"))
        fill(full)
        rack.ends(rack.run(*ONE), 3)
        rack.kill("alpha", signal.SIGTERM)
    (found,) = reasons(rack, "broken")
    assert "alpha" in found
    assert "No space left" in found
    rack.restart_agents()
    whole_after(rack, *ONE, finished=0)


def test_the_controller_s_disk_is_full(rack: Bed) -> None:
    """The run ends and says so; what was finished before is kept."""
    with small_disk(rack.where / "results", "12g") as full:
        process = rack.run(*SLOW)
        for _ in range(POINTS):
            rack.reaches("sender Apply begins", process)
        kept = [path for path in full.glob("*/points/*") if said(path)]
        assert eventually(lambda: resized(full, shutil.disk_usage(full).used))
        told = rack.ends(process, 3)
        assert "no space left on the device" in told.lower()
        assert "--resume" in told
        assert resized(full, 12 << 30)
        assert [path for path in full.glob("*/points/*") if said(path)] == kept
        whole_after(rack, *SLOW, finished=1)


# By hand


def restore(rack: Bed, *words: str) -> subprocess.CompletedProcess[str]:
    argv = rack.command("restore", "--testbed", str(rack.inventory), *words)
    return subprocess.run(
        argv, cwd=rack.where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
    )


def test_restore(rack: Bed) -> None:
    """It waits for a dead controller's lease, not longer than asked, and names every machine."""
    before = rack.attest()
    assert all(": nothing was changed" in line for line in restore(rack).stdout.splitlines())
    process = rack.run(*SLOW, lease_s=8)
    rack.reaches("switch Apply ended", process)
    refused = restore(rack, "--wait", "0")  # before the kill: a busy machine may take longer than the lease
    process.kill()
    process.communicate(timeout=120)
    assert refused.returncode == 3
    assert "leased to" in refused.stdout
    assert "3 not restored" in refused.stdout
    done = restore(rack)
    assert done.returncode == 0, done.stdout
    assert [line.partition(" (")[0] for line in done.stdout.splitlines()] == ["host alpha", "host beta", "switch s1"]
    assert drift(before, rack.attest()) == []


def test_restore_names_a_machine_that_is_not_there(rack: Bed) -> None:
    rack.kill("beta", signal.SIGTERM)
    done = restore(rack)
    assert done.returncode == 3
    assert f"host beta ({rack.listens('beta')}): not reachable" in done.stdout
    assert done.stdout.rstrip().endswith("1 not restored")
    assert f"host alpha ({rack.listens('alpha')}): nothing was changed" in done.stdout
