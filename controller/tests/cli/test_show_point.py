# SPDX-License-Identifier: Apache-2.0
"""`testctl show RUN POINT`: all of one point."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.results import load_run

from controller.tests.support.synthetic_sweep import make_sweep

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_sweep(tmp_path / "results", figures="").path


def test_a_point_is_shown_with_all_its_metrics_and_what_was_swept(run: Path, command: Call) -> None:
    point = next(one for one in load_run(run).points if one.verdict == "fail")
    code, out, err = command("show", str(run), point.id[:6])
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == f"{point.id}  ✗ fail"
    assert [f"  {reason}" for reason in point.reason.split("; ")] == lines[1 : 1 + len(point.reason.split("; "))]
    rows = [line.split() for line in lines]
    for entity, parameter, _ in point.tuples:
        assert any(row[:2] == [entity, parameter] for row in rows)
    assert any(row[-1:] == ["swept"] for row in rows)
    assert all(any(row[:1] == [name] for row in rows) for of in point.metrics.values() for name in of)
    metrics = [row[0] for row in rows if row and any(row[0] in of for of in point.metrics.values())]
    assert metrics == ["saturation", "throughput_bps", "latency_p99_us", "jain"], "expected, headline, the others"
    assert f"files   {point.path}" in lines


def test_json_is_the_summary_of_the_run(run: Path, command: Call) -> None:
    code, out, err = command("show", str(run), "--json")
    assert (code, json.loads(out), err) == (0, load_run(run).summary, "")


def test_a_wrong_id_and_options_of_a_whole_run_are_refused(run: Path, command: Call) -> None:
    code, _, err = command("show", str(run), "zzz")
    assert code == 2
    assert "'zzz' names none" in err
    code, out, err = command("show", str(run), "--csv", "--json")
    assert (code, out, err) == (2, "", "want one of --json, --csv and --plot; got --json and --csv\n")
    code, _, err = command("show", str(run), load_run(run).points[0].id, "--json")
    assert code == 2
    assert "--json: want a run alone" in err


def test_files_of_a_point_that_can_not_be_read(run: Path, command: Call) -> None:
    """The others are shown, the file is named, and the exit code is that of what is broken."""
    broken, *others = load_run(run).points
    (broken.path / "metrics.json").write_text("")
    code, out, err = command("show", str(run))
    assert code == 3
    assert err.startswith(f"warning: a point is left out: {broken.path}/metrics.json: can't read it: ")
    assert len(err.splitlines()) == 1
    assert all(point.id[:8] in out for point in others if point.verdict != "pass")
    assert broken.id[:8] not in out
    code, out, err = command("show", str(run), others[0].id)
    assert (code, err) == (0, "")
    code, out, err = command("show", str(run), broken.id)
    assert (code, out) == (2, "")
    assert err.startswith(f"{broken.path}/metrics.json: can't read it: ")
    for point in others:
        (point.path / "verdict.json").write_text("{")
    code, out, err = command("show", str(run))
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == len(others) + 1
