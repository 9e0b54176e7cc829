# SPDX-License-Identifier: Apache-2.0
"""`replay --gdb`: the lab's kernel stops in virtual time at what the records show, and goes the same way."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli_commands import output
from tests.plan_runs import run_of

pytestmark = [pytest.mark.long, pytest.mark.lab]

PLAN = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, kernel, "{kernel}"]
  - [hosts, tcp_events, on]
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 5ms]
  - [switch, fate, "drop data 100 of bulk, first"]
  - [bulk, duration, 200ms]
"""
SCRIPT = """
break tcp_enter_recovery
run
printf "stopped after %f ms\\n", $ms()
backtrace 3
delete
{end}
"""
RECOVERY = 3
"""TCP_CA_Recovery in include/uapi/linux/tcp.h."""
has_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")


@pytest.fixture(scope="module", params=["6.12", "6.1"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run with one recovery, and the id of its point."""
    where = tmp_path_factory.mktemp("gdb")
    made = run_of(where, PLAN.format(kernel=request.param))
    return made.path, made.points[0].id


def entered_recovery(run: Path, point: str) -> float:
    """When the sender did, by the point's records of TCP's events; ms."""
    events = pq.read_table(run / "points" / point / "tcp_events.parquet").to_pylist()
    return next(row["time_ns"] / 1e6 for row in events if row["where"] == "sender" and row["state"] == RECOVERY)


@has_gdb
def test_it_stops_at_the_time_that_the_records_show(run: tuple[Path, str], tmp_path: Path) -> None:
    script = tmp_path / "stop.gdb"
    script.write_text(SCRIPT.format(end="continue"))
    said = output(tmp_path, "replay", str(run[0]), run[1], "--gdb", "-x", str(script))
    (stopped,) = re.findall(r"^stopped after ([0-9.]+) ms$", said, re.MULTILINE)
    assert float(stopped) == pytest.approx(entered_recovery(*run), abs=1e-6)
    assert f"virtual time {stopped} ms" in said
    assert "tcp_fastretrans_alert" in said
    assert re.search(r"/linux: the same digest as the run's$", said, re.MULTILINE)  # gdb's warnings stand after it


@has_gdb
def test_a_lab_that_is_left_in_gdb_has_no_result(run: tuple[Path, str], tmp_path: Path) -> None:
    script = tmp_path / "stop.gdb"
    script.write_text(SCRIPT.format(end="kill"))
    said = output(tmp_path, "replay", str(run[0]), run[1], "--gdb", "-x", str(script))
    assert re.search(r"/linux: the lab ended before its point did$", said, re.MULTILINE)


def test_bad_input(run: tuple[Path, str], tmp_path: Path) -> None:
    words = ["replay", str(run[0]), run[1]]
    assert "-x: want it with --gdb" in output(tmp_path, *words, "-x", "file", code=2)
    said = output(tmp_path, *words, "--gdb", "--events", "--json", code=2)
    assert said == "--gdb: want it without --events, --json: nothing is recorded or kept of a lab in gdb\n"
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    said = output(tmp_path, *words, "--gdb", code=3, PATH=bin_)
    assert said == "gdb is not installed; install it with: apt-get install gdb\n"


@has_gdb
def test_a_script_that_is_not_there(run: tuple[Path, str], tmp_path: Path) -> None:
    said = output(tmp_path, "replay", str(run[0]), run[1], "--gdb", "-x", "none.gdb", code=2)
    assert said == "-x none.gdb: want a file with commands of gdb; there is none\n"
