# SPDX-License-Identifier: Apache-2.0
"""With which tuples a line is reached, and what of a run the command can't take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.cli.main import app
from testctl.coverage.conditions import only_with
from testctl.results import layout
from testctl_agent.spec.errors import PlanError, TestbedError
from typer.testing import CliRunner

from controller.tests.support.synthetic_sweep import make_sweep

POINTS = [
    {("sender", "cc"): cc, ("sender", "tso"): tso, ("sender", "mtu"): "1500"}
    for cc in ("cubic", "reno", "dctcp")
    for tso in ("on", "off")
]


def test_tuples_without_which_no_point_reaches_a_line() -> None:
    reached = [point["sender", "cc"] != "dctcp" and point["sender", "tso"] == "on" for point in POINTS]
    assert only_with(POINTS, reached) == [("sender", "tso", ["on"]), ("sender", "cc", ["cubic", "reno"])]
    assert only_with(POINTS, [True] * len(POINTS)) == []
    assert only_with(POINTS, [False] * len(POINTS)) == []


def test_a_run_without_counters_and_one_of_a_kernel_that_is_gone(tmp_path: Path) -> None:
    run = make_sweep(tmp_path)
    result = CliRunner().invoke(app, ["coverage", str(run.path)])
    assert isinstance(result.exception, PlanError)
    assert "want points on a kernel that counts what it executes, as of testctl run PLAN" in str(result.exception)
    of_point = run.points[0].path
    spec = json.loads((of_point / layout.POINT).read_text(encoding="utf-8"))
    (of_point / layout.POINT).write_text(json.dumps(spec | {"kernel": "6.12-coverage-gone"}), encoding="utf-8")
    (of_point / layout.COVERAGE).write_bytes(b"none")
    result = CliRunner().invoke(app, ["coverage", str(run.path)])
    assert isinstance(result.exception, TestbedError)
    assert "not built here any more, so its counters can't be read" in str(result.exception)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--unreached", "--line", "x:1"], "want one of --alone, --unreached, --line and --html"),
        (["--unreached", "--html", "x"], "want one of --alone, --unreached, --line and --html"),
        (["--alone"], "--alone: want two runs; got 1"),
        (["other", "third", "--alone"], "--alone: want two runs; got 3"),
    ],
)
def test_one_answer_at_once(words: list[str], wanted: str) -> None:
    result = CliRunner().invoke(app, ["coverage", "run", *words])
    assert isinstance(result.exception, PlanError)
    assert wanted in str(result.exception)
