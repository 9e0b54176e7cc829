# SPDX-License-Identifier: Apache-2.0
"""`testctl run --testbed netns` from end to end: nothing outside of its namespaces changes, nothing is left."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from testctl.metrics.core.bins import dense_bins
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.results import Run, load_run
from testctl.system.netns_names import HOMES, NAMED, Owner, owner_of
from testctl_agent.cc.struct_ops import available, unavailable
from testctl_agent.network import qdisc

from controller.tests.report.reading import text_of
from tests import cli_commands

alone, root = pytest.mark.alone, pytest.mark.root
VERSION = ".".join(platform.release().split("-")[0].split(".")[:2])
PLAN = """
about: short flows
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [sender, htb_rate, 50mbit]
  - [bulk, bytes, 200kB]
expect:
  - {name: all arrives, metric: payload_bytes, equals: 200000}
"""
LIST = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def write(where: Path, *tuples: str) -> Path:
    """The plan, with more tuples."""
    lines = "".join(f"  - {one}\n" for one in tuples)
    (where / "short.yaml").write_text(PLAN.replace("expect:", f"{lines}expect:"), encoding="utf-8")
    return where / "short.yaml"


def argv(file: Path, *words: str) -> list[str]:
    return [*cli_commands.TESTCTL, "run", str(file), "--testbed", "netns", *words]


def call(file: Path, *words: str, code: int = 0, command: str = "run") -> str:
    """Run it in the plan's directory; returns its output."""
    words = (command, str(file), "--testbed", "netns", *words)
    done = cli_commands.call(file.parent, *words, code=code, timeout_s=300)
    return done.stdout + done.stderr


def run(file: Path, *words: str, code: int = 0) -> Run:
    call(file, "--out", "run", *words, code=code)
    return load_run(file.parent / "run")


def first_namespace() -> dict[str, Any]:
    """What of the first namespace a run could change: devices, addresses, routes, qdiscs, TCP's settings.

    Devices whose other end is in somebody else's namespace, and their bridges, come and go with their owners.
    """
    shown: dict[str, Any] = {}
    links = ip("-o", "link")
    theirs = [line for line in links if "link-netns" in line]
    foreign = {line.split()[1].rstrip(":").partition("@")[0] for line in theirs}
    foreign |= {bridge for line in theirs for bridge in re.findall(r" master (\S+)", line)}
    for words in ("-o link", "-o address", "route show table all", "rule"):
        shown[words] = [line for line in ip(*words.split()) if not foreign & set(re.split(r"[\s@:]+", line))]
    shown["ours"] = [line for line in links if "link-netns testctl-" in line]
    for path in sorted(Path("/proc/sys/net").glob("*/*")):
        if path.is_file() and os.access(path, os.R_OK):
            with suppress(OSError):
                shown[str(path)] = path.read_text(encoding="utf-8", errors="replace")
    return shown


def ip(*words: str) -> list[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout.splitlines()


def left(pid: int) -> list[str]:
    """Names of namespaces and directories that processes below a run made and that are dead or its own."""
    names = [path.name for path in (*NAMED.glob("testctl-*"), *HOMES.glob("testctl-*"))]
    return [name for name in names if (owner := owner_of(name)) and (owner.pid == pid or not owner.alive())]


@alone
def test_two_pairs_at_once(tmp_path: Path) -> None:
    """One with what the kernel has, one with BPF; the bins sum to the wire; the first namespace is as before."""
    before, had = first_namespace(), available()
    names = ["cubic", *(["dctcp_bug"] if not unavailable() else ["reno"])]
    one = run(write(tmp_path), "--set", f"hosts.cc={','.join(names)}", "--set", "hosts.tcp_ecn=1", "--jobs", "2")
    assert [point.verdict for point in one.points] == ["pass", "pass"]
    after = first_namespace()
    assert {
        what: (before.get(what), after.get(what)) for what in {*before, *after} if before.get(what) != after.get(what)
    } == {}
    assert available() == had
    assert not left(0)
    for point in one.points:
        assert point.outcome["kernel"] == platform.release()
        records = Records.load(point.path)
        for bin_ns in (1_000, 1_000_000, 7_654_321):
            rows = view(records, "bulk").into
            _, sums = dense_bins(rows["time_ns"], rows["wire_bytes"], bin_ns)
            assert int(sums.sum()) == records.counters["receiver"]["device"]["eth0"]["rx_bytes"]


@alone
@pytest.mark.skipif(bool(unavailable()), reason="this kernel can't have DCTCP as BPF")
def test_the_limiter_marks_data_on_any_kernel(tmp_path: Path) -> None:
    """By RED where the kernel has it, else by a program; dctcp's sender answers with a smaller window."""
    file = write(tmp_path, "[hosts, tcp_ecn, 1]", "[sender, htb_ecn_threshold, 3kB]", "[sender, htb_mark, data]")
    (point,) = run(file, "--set", "hosts.cc=dctcp").points
    assert point.verdict == "pass", point.reason
    found = point.metrics["bulk"]
    assert found["ce_marks"] > 0
    assert found["ece_fraction"] > 0
    assert found["packets_lost"] == 0


@root
def test_ipv4_and_ipv6_with_another_mtu_and_initial_window(tmp_path: Path) -> None:
    """The path of each is probed, and each has the window on its own route."""
    file = write(tmp_path, "[bulk, family, [4, 6]]", "[all, mtu, 1400]", "[sender, initcwnd, 3]")
    one = run(file)
    assert [point.verdict for point in one.points] == ["pass", "pass"], [point.reason for point in one.points]
    for point, payload in zip(one.points, (1400 - 52, 1400 - 72), strict=True):
        records = Records.load(point.path)
        seen = view(records, "bulk")
        assert int((seen.into["length"] // seen.into["segs"]).max()) == payload
        assert records.counters["receiver"]["device"]["eth0"]["rx_bytes"] == int(seen.into["wire_bytes"].sum())


@root
def test_what_can_not_be_had_is_skipped_with_its_reason(tmp_path: Path) -> None:
    one = run(write(tmp_path), "--set", f"hosts.kernel=['5.99', '{VERSION}']", "--set", "hosts.cc=nosuch", code=4)
    assert {point.verdict for point in one.points} == {"skip"}
    other, missing = sorted((point.reason for point in one.points), key=lambda reason: "nosuch" in reason)
    assert f"kernel: want 5.99; this testbed runs {VERSION} ({platform.release()})" in other
    assert re.search(r"cc: want nosuch; this kernel has .*, and there is no BPF program of that name", missing)


@root
@pytest.mark.skipif(not qdisc.unavailable("fq") if os.geteuid() == 0 else True, reason="this kernel has fq")
def test_a_tuple_that_can_not_be_had_is_left_out_by_choice(tmp_path: Path) -> None:
    file = write(tmp_path, "[switch, rate, 1gbit]", "[switch, delay, 5us]")
    said = call(file, "--out", "skipped", code=4)
    assert "switch:sender, rate and switch:sender, delay" in said
    assert "this kernel has no fq qdisc" in said
    one = run(file, "--without", "switch.rate", "--without", "switch.delay")
    assert one.points[0].verdict == "pass"
    assert one.summary["left_out"] == [["switch", "rate", "1gbit"], ["switch", "delay", "5us"]]
    assert "--without switch.rate" in one.summary["reproduce"]
    page = text_of(one.path / "report.html")
    assert "switch, rate, 1gbit: by --without switch.rate, so it was not set" in page
    assert "not measured on this machine" in page


@alone
def test_a_killed_run_leaves_nothing_after_the_next(tmp_path: Path) -> None:
    allowed, before = LIST.read_text(encoding="ascii"), available()
    file = write(tmp_path)
    words = ("--set", "bulk.bytes=1GB", "--set", "hosts.cc=dctcp", "--out", "killed")
    killed = subprocess.Popen(argv(file, *words), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not list(tmp_path.glob("killed.in-progress/.work/*/raw/*/bulk-client")):
        time.sleep(0.05)
    workers = children(killed.pid)
    mine = {path for path in NAMED.glob("testctl-*") if (owner := owner_of(path.name)) and owner.pid in workers}
    assert len(mine) == 3
    inodes = {path.stat().st_ino for path in mine}
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    while processes_in(inodes) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_in(inodes)  # nothing runs on, though the names are there
    assert run(file).points[0].verdict == "pass"
    assert not [path for path in mine if path.exists()]
    assert not left(killed.pid)
    assert (LIST.read_text(encoding="ascii"), available()) == (allowed, before)


def children(pid: int) -> set[int]:
    """The processes below one."""
    return {one.pid for one in psutil.Process(pid).children(recursive=True)}


def processes_in(inodes: set[int]) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            if path.stat().st_ino in inodes:
                found.append(path.parts[2])
        except OSError:
            continue
    return found


@pytest.mark.long
@alone
def test_the_noise_is_measured_and_stated(tmp_path: Path) -> None:
    file = write(tmp_path)
    text = call(file, "--repeat", "2", "--jobs", "2", "--metric", "payload_bytes", command="aa")
    assert "bulk payload_bytes: mean 200000, varies by 0.00%" in text
    assert "2 at once: yes: bulk payload_bytes spreads 1.00 times as much as alone" in text
    one = call(file)
    assert "bulk payload_bytes varies by 0.00% of its mean" in one
    assert "at most 2 at once" in one


@root
def test_who_is_not_root_is_told_what_to_do(tmp_path: Path) -> None:
    file = write(tmp_path)
    nobody = ["unshare", "--user"]
    done = subprocess.run(
        [*nobody, *argv(file)], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "--testbed netns makes network namespaces" in done.stderr
    assert "run it as root (sudo), or take --testbed lab" in done.stderr


def test_an_owner_is_alive_by_its_start_too() -> None:
    me = Owner(os.getpid(), 1)
    assert not me.alive()
    assert owner_of("testctl-12-345-1-sender") == Owner(12, 345)
    assert owner_of("rack-alpha") is None
