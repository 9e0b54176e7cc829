# SPDX-License-Identifier: Apache-2.0
"""`testctl compare` and `testctl history` on runs as they are made: in the lab, and by the wall clock."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests import cli_commands

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic_prr]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, duration, 300ms]
expect:
  - {name: the link is used, metric: saturation, min: 0.5}
"""
REPEATED = """
topology: pair
flows: {bulk: sender -> receiver}
repeat: 5
tuples:
  - [bulk, bytes, 100kB]
"""


def call(where: Path, *words: str, code: int = 0) -> str:
    """The output of a command, or its errors if it must fail."""
    done = cli_commands.call(where, *words, code=code)
    return done.stderr if code == 2 else done.stdout


def compared(where: Path, *words: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(where, "compare", *words, "--json", code=code))
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs in the lab: a, b the same; slow behind half the rate; halving by another line of the congestion control."""
    where = tmp_path_factory.mktemp("results")
    (where / "short.yaml").write_text(PLAN)
    told = {
        "a": (),
        "b": (),
        "slow": ("--set", "switch:receiver.rate=50mbit"),
        "halving": ("--set", "hosts.cc=cubic_halving"),
    }
    for name, words in told.items():
        call(where, "run", "short.yaml", *words, "--out", name)
    return where


@pytest.mark.lab
def test_two_runs_of_the_same_do_not_differ(runs: Path) -> None:
    assert call(runs, "compare", "a", "b") == "no difference: 1 point with the same digests\n"
    call(runs, "compare", "a", "b", "--strict", "--junit", "j.xml", "--sarif", "s.json", "--markdown", "m.md")
    assert ET.parse(runs / "j.xml").getroot().get("failures") == "0"
    assert json.loads((runs / "s.json").read_text())["runs"][0]["results"] == []
    assert "no difference" in (runs / "m.md").read_text()


@pytest.mark.lab
def test_what_one_setting_changes_is_named(runs: Path) -> None:
    found = compared(runs, "a", "slow", code=1)
    (one,) = found["differences"]
    assert one["asked"] == [["switch:receiver", "rate", "100mbit", "50mbit"]]
    moved = {metric["metric"]: metric for metric in one["metrics"]}
    assert moved["goodput_bps"]["direction"] == "worse"
    assert moved["goodput_bps"]["relative"] < -0.3
    assert one["first"]["what"] == "packet"
    assert one["first"]["fields"]
    assert one["first"]["flow"] == "bulk"
    back = compared(runs, "slow", "a", code=1)["differences"][0]
    assert {m["metric"]: m["direction"] for m in back["metrics"]}["goodput_bps"] == "better"
    told = call(runs, "compare", "a", "slow", code=1)
    assert "asked switch:receiver.rate: 100mbit → 50mbit" in told
    assert "first difference: packet " in told


@pytest.mark.lab
def test_what_a_line_of_a_congestion_control_changes_is_named(runs: Path) -> None:
    """lab/cc/tcp_cubic_halving.c is tcp_cubic_prr.c with another loss recovery: all is the same up to a loss."""
    (one,) = compared(runs, "a", "halving", code=1)["differences"]
    first = one["first"]
    assert first["where"] == "sender"
    assert first["index"] > 100
    moved = {metric["metric"] for metric in one["metrics"]}
    assert moved & {"recovery_segments_sent", "recovery_new_segments", "recovery_cwnd_min", "prr_out_ratio_max"}


@pytest.mark.lab
def test_runs_that_lack_something_are_told_apart(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "slow", tmp_path / "bare")
    (packets,) = (tmp_path / "bare").glob("points/*/packets.parquet")
    packets.unlink()
    assert "packets can't be compared: there is no" in call(runs, "compare", "a", str(tmp_path / "bare"), code=1)
    packets.write_bytes(b"PAR1 nothing PAR1")
    assert "can't read the records" in call(runs, "compare", "a", str(tmp_path / "bare"), code=1)
    shutil.copytree(runs / "b", tmp_path / "b.in-progress")
    assert "it is in progress" in call(runs, "compare", "a", str(tmp_path / "b"), code=2)
    assert "there is none" in call(runs, "compare", "a", "nowhere", code=2)
    assert "compared exactly, without --metric" in call(runs, "compare", "a", "b", "--metric", "jain", code=2)
    assert "compared exactly, without --metric, --seed" in call(runs, "compare", "a", "b", "--seed", "1", code=2)
    assert "got nonsense" in call(runs, "compare", "a", "b", "--metric", "nonsense", code=2)


@pytest.mark.lab
def test_a_history_of_equal_runs_is_steady(runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).symlink_to(runs / "a")
    assert "want finished runs" in call(runs, "history", "--results", str(tmp_path), code=2)
    for name in ("d", "e"):
        shutil.copytree(runs / "a", tmp_path / name)
    words = ("history", "--results", str(tmp_path), "--runs", "2", "--metric", "goodput_bps")
    said = json.loads(call(runs, *words, "--json"))
    (trend,) = said["trends"]
    assert (len(said["runs"]), len(trend["values"]), len(trend["levels"])) == (2, 2, 1)
    assert "1 histories, 0 with a change" in call(runs, *words)


@pytest.mark.long
@pytest.mark.alone
def test_repetitions_by_the_wall_clock_are_samples(tmp_path: Path) -> None:
    (tmp_path / "again.yaml").write_text(REPEATED)
    call(tmp_path, "run", "again.yaml", "--testbed", "netns", "--out", "a")
    said = compared(tmp_path, "a", "a", "--metric", "throughput_bps")
    assert said["how"] == "statistics"
    assert [[m["said"], m["p"]] for cell in said["cells"] for m in cell["metrics"]] == [["no evidence", 1.0]]
    assert [cell["verdicts"] for cell in said["cells"]] == [[{"pass": 5}, {"pass": 5}]]
    assert "want a run of plan again" not in call(tmp_path, "compare", "a", "a", "--junit", "j.xml")
    assert ET.parse(tmp_path / "j.xml").getroot().get("tests") == "1"
