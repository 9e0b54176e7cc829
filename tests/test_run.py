# SPDX-License-Identifier: Apache-2.0
"""`testctl run` from end to end, in the lab: same answers, clear ends, nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.execution.point import run_one
from testctl.plan import load_plan
from testctl.records.schema import FIN
from testctl.results import load_run
from testctl.system.worker_pool import kill_workers, workers
from testctl.testbeds.lab import LabTestbed

from tests import cli_commands
from tests.leftovers import marked

pytestmark = pytest.mark.lab

PLAN = """
about: a short flow over {what}
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, kernel, {kernel}]
  - [hosts, cc, {cc}]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, duration, {duration}]
expect:
  - {{name: the link is used, metric: saturation, min: 0.5}}
"""


def plan(where: Path, kernel: str = '"6.12"', cc: str = "cubic", duration: str = "300ms") -> Path:
    path = where / "short.yaml"
    path.write_text(PLAN.format(what="netem", kernel=kernel, cc=cc, duration=duration), encoding="utf-8")
    return path


def call(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With a TMPDIR that distinguishes the labs of this test from all others."""
    return cli_commands.call(where, *words, code=None, TMPDIR=where)


def start(where: Path, *words: str) -> subprocess.Popen[str]:
    argv, pipe = [*cli_commands.TESTCTL, *words], subprocess.PIPE
    env = os.environ | {"TMPDIR": str(where)}
    return subprocess.Popen(argv, cwd=where, stdout=pipe, stderr=pipe, text=True, env=env)


def summary(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    return found


def labs(where: Path) -> set[int]:
    """The process ids of the labs that a test started."""
    return set(marked(f"TESTCTL_STEPS={where}/"))


def wait_for_labs(where: Path, settled_s: float = 1.0) -> set[int]:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if labs(where):
            time.sleep(settled_s)
            return labs(where)
        time.sleep(0.005)
    raise AssertionError("no lab was started within 300 s")


def gone(where: Path, pids: set[int] | None = None) -> bool:
    """Wait until none of the labs of a test is left, or none of those; they would go on for minutes by themselves."""
    deadline = time.monotonic() + 60
    while (left := labs(where) if pids is None else labs(where) & pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


@contextmanager
def busy() -> Iterator[None]:
    """The cores kept busy: beside two jobs there is always something else to run."""
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def test_two_runs_have_the_same_digest_whatever_the_load(tmp_path: Path) -> None:
    file = plan(tmp_path, cc="[cubic, bbr, dctcp, cdg]")
    first = call(tmp_path, "run", str(file), "--out", "one", "--jobs", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    with busy():
        second = call(tmp_path, "run", str(file), "--out", "two", "--jobs", "2")
    assert second.returncode == 0, second.stdout + second.stderr
    one, two = summary(tmp_path / "one"), summary(tmp_path / "two")
    assert len(one["points"]) == 4
    assert [(p["id"], p["digest"]) for p in one["points"]] == [(p["id"], p["digest"]) for p in two["points"]]
    assert len({p["digest"] for p in one["points"]}) == 4
    assert one["digest"] == two["digest"]
    compared = call(tmp_path, "compare", "one", "two")
    assert (compared.returncode, compared.stdout) == (0, "no difference: 4 points with the same digests\n")


@pytest.mark.long
def test_points_of_a_run_have_the_kernels_that_they_name(tmp_path: Path) -> None:
    done = call(tmp_path, "run", str(plan(tmp_path, kernel='["6.12", "6.1"]')), "--out", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / "run").glob("points/*/outcome.json")]
    assert sorted(outcome["kernel"].rsplit(".", 1)[0] for outcome in outcomes) == ["6.1", "6.12"]


def test_the_point_ends_after_its_last_packet(tmp_path: Path) -> None:
    """The agents wake up when nothing is under way: a process that reads the clock moves it."""
    file = plan(tmp_path)
    text = file.read_text(encoding="utf-8").replace("delay, 2ms", "delay, 60ms")
    file.write_text(text.replace("min: 0.5", "min: 0"), encoding="utf-8")
    done = call(tmp_path, "run", str(file), "--out", "run")
    assert done.returncode == 0, done.stdout + done.stderr
    (point,) = load_run(tmp_path / "run").points
    table = point.packets(["time_ns", "where", "out", "seq", "ack", "length", "flags"])
    assert table is not None
    rows = [row for row in table.to_pylist() if row["where"] != "switch"]
    for closer in ("sender", "receiver"):
        (fin,) = [row for row in rows if row["flags"] & FIN and row["where"] == closer and row["out"]]
        after = fin["seq"] + fin["length"] + 1
        assert [row for row in rows if row["where"] == closer and not row["out"] and row["ack"] == after], closer
    last_ns = point.outcome["t0_ns"] + max(row["time_ns"] for row in rows)
    assert point.outcome["end_ns"] > last_ns
    rates = call(tmp_path, "series", "run", point.id).stdout.splitlines()
    assert len(rates) > 10
    assert all(re.fullmatch(r"time_ns \d+  wire_bytes \d+  bps [\d.]{1,12}", line) for line in rates)
    events = call(tmp_path, "series", "run", point.id, "--metric", "tcp").stdout
    assert "snd_una" in events
    assert "dctcp_alpha" not in events, "what is known of no row is no column"


def test_a_lab_that_takes_too_long_is_broken_and_the_others_go_on(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    text = plan(tmp_path).read_text(encoding="utf-8")
    file.write_text(text.replace("duration, 300ms", "duration, [300ms, 400s]"), encoding="utf-8")
    done = call(tmp_path, "run", str(file), "--out", "run", "--wall-limit", "6")
    assert done.returncode == 3, done.stdout + done.stderr
    verdicts = {p["verdict"]: p["reason"] for p in summary(tmp_path / "run")["points"]}
    assert set(verdicts) == {"pass", "broken"}
    assert "the lab ran for more than 6 s of wall time and was ended" in verdicts["broken"]


def test_a_lab_that_is_killed_is_broken(tmp_path: Path) -> None:
    file = plan(tmp_path, duration="200s")
    process = start(tmp_path, "run", str(file), "--out", "run")
    os.kill(min(wait_for_labs(tmp_path)), signal.SIGKILL)
    process.communicate(timeout=300)
    assert process.returncode == 3
    (point,) = summary(tmp_path / "run")["points"]
    assert point["verdict"] == "broken"
    assert "the lab ended without a result (exit -9)" in point["reason"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_nothing_runs_on_and_nothing_is_half_written(tmp_path: Path, how: signal.Signals) -> None:
    file = plan(tmp_path, duration="200s")
    process = start(tmp_path, "run", str(file), "--out", "run")
    mine = wait_for_labs(tmp_path)
    process.send_signal(how)
    _, said = process.communicate(timeout=300)
    if how is not signal.SIGKILL:
        assert process.returncode == 130, said
        assert "interrupted" in said
        assert not (tmp_path / "run.in-progress").exists()
    assert not (tmp_path / "run").exists()
    assert gone(tmp_path, mine)


def test_told_to_end_while_labs_start_no_process_of_theirs_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (point,) = load_plan(plan(tmp_path, duration="200s").read_text(encoding="utf-8")).points
    bed = LabTestbed.for_points([point])
    for number in range(4):
        run = tmp_path / str(number)
        (run / "points").mkdir(parents=True)
        with workers(3) as pool:
            for repeat in range(3):
                pool.submit(run_one, bed, replace(point, repeat=repeat), run, False)
            wait_for_labs(tmp_path, 0.03 * number)
            kill_workers(pool)
    assert gone(tmp_path)


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    file = plan(tmp_path)
    assert call(tmp_path, "run", str(file), "--results", "r", "--set", "hosts.cc=cubic").returncode == 0
    again = call(tmp_path, "run", str(file), "--results", "r", "--resume", "--set", "hosts.cc=cubic,reno", "--json")
    assert again.returncode == 0, again.stderr
    points = json.loads(again.stdout)["points"]
    assert ["reused_from" in p for p in points] == [True, False]


def test_a_kernel_that_is_not_built_is_named_with_its_command(tmp_path: Path) -> None:
    done = call(tmp_path, "run", str(plan(tmp_path)), "--out", "run", "--kernel", "5.99")
    assert done.returncode == 2
    assert "kernel 5.99: no source at" in done.stderr
    assert "apt-get install linux-source-5.99" in done.stderr
    assert not list(tmp_path.glob("run*"))


def test_a_result_directory_that_exists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    done = call(tmp_path, "run", str(plan(tmp_path)), "--out", "run")
    assert done.returncode == 2
    assert "run: the result directory exists already" in done.stderr
