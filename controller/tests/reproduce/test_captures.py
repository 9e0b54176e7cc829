# SPDX-License-Identifier: Apache-2.0
"""A plan from captures that nobody's run made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.cli.main import app
from testctl.plan import load_plan
from testctl_agent.spec.errors import PlanError
from typer.testing import CliRunner

RAW = Path(__file__).parents[1] / "metrics" / "fixtures" / "all_instruments" / "raw"
CAPTURES = [str(RAW / host / "capture" / "capture.pcap") for host in ("sender", "receiver")]


@pytest.mark.parametrize(("ends", "rate"), [(1, 10_005_000), (2, 10_000_000)])
def test_one_or_both_ends_become_a_plan(ends: int, rate: int, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    result = CliRunner().invoke(app, ["reproduce", *CAPTURES[:ends], "--out", str(out)])
    assert result.exit_code == 0, result.output
    first, *_ = load_plan(out.read_bytes()).points
    assert first.settings["switch:receiver"]["rate"] == rate
    assert first.settings["switch"]["fate"] == "drop data 31-34,60,103-104 of c1, first; drop data 110 of c1"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"], "the run of the capture is temporary"


def test_a_file_that_is_no_capture() -> None:
    result = CliRunner().invoke(app, ["reproduce", __file__])
    assert "test_captures.py: byte 0: want a capture (pcap or pcapng)" in str(result.exception or result.output)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("there.yaml", "exists already, and is not changed"),
        ("none/plan.yaml", "want a file in an existing directory"),
        ("plan.txt", "want a file name that ends in .yaml"),
    ],
)
def test_a_plan_that_can_not_be_written_is_refused_before_anything_is_read(
    name: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there.yaml").touch()
    monkeypatch.setattr("testctl.cli.analyse.analysed", None)
    result = CliRunner().invoke(app, ["reproduce", *CAPTURES, "--run", "--out", str(tmp_path / name)])
    assert isinstance(result.exception, PlanError)
    assert error in str(result.exception)


def test_what_chooses_connections_of_a_capture_is_refused_with_a_run(tmp_path: Path) -> None:
    for option in (["--at", "client"], ["--only", "10.0.0.1"]):
        result = CliRunner().invoke(app, ["reproduce", str(tmp_path), *option])
        assert "--at, --only: want a capture with it; got the directory" in str(result.exception)


def test_a_plan_that_was_not_written_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testctl.reproduce.search.search", lambda *_: None)
    out = tmp_path / "plan.yaml"
    result = CliRunner().invoke(app, ["reproduce", *CAPTURES, "--run", "--out", str(out), "--json"])
    assert (result.exit_code, out.exists(), json.loads(result.stdout)["plan"]) == (3, False, None)
