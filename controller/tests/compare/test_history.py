# SPDX-License-Identifier: Apache-2.0
"""Histories: which run and commit began a level; what is left out of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from testctl.cli.history import print_history
from testctl.compare.history import past_runs, trends
from testctl_agent.spec.errors import PlanError

from controller.tests.compare.written import TUPLES, Given, write_run

FOREIGN = (
    '{"plan": "p", "poin',
    "[" * 100_000,
    '{"plan": "p", "started": "2026", "points": [1]}',
    '{"plan": "p", "started": "2026", "points": [{"id": "a", "verdict": "pass", "tuples": [["hosts"]]}]}',
)
"""summary.json of other runs, torn or not as testctl writes it."""


def runs(where: Path, values: Sequence[float], **more: object) -> None:
    for day, value in enumerate(values):
        point = Given(metrics={"throughput_bps": value, "latency_mean_us": 7.5}, packets=None)
        write_run(where / f"night{day:02}", [point], days=day, **more)


def test_in_the_lab_every_step_is_a_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs(tmp_path, [1e9, 1e9, 0.9e9, 0.9e9, 0.95e9])
    plan, bed, found, damaged = past_runs(tmp_path)
    assert (plan, bed, len(found), damaged) == ("p", "lab", 5, ())
    moved, steady = trends(found)
    assert (moved.metric, steady.metric, len(steady.levels)) == ("throughput_bps", "latency_mean_us", 1)
    assert [(one.first, one.count, one.direction) for one in moved.levels] == [
        (0, 2, "other"), (2, 2, "worse"), (4, 1, "better"),
    ]  # fmt: skip
    said = moved.to_json()["levels"][1]
    assert (said["run"], said["relative"]) == ("night02", pytest.approx(-0.1))
    assert (said["commit_before"], said["commit"]) == (f"{1:040x}", f"{2:040x}")
    print_history(plan, found, (moved, steady), False, 3)
    out = capsys.readouterr().out
    assert "→ 900 Mb/s (2 runs; -10 %, worse) since night02: commit 000000000000" in out
    assert "2 histories, 1 with a change" in out
    assert "latency" not in out


def test_by_the_wall_clock_noise_is_no_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = 1e9 * np.random.default_rng(3).normal(1, 0.002, 24)
    values[16:] *= 0.98
    runs(tmp_path, list(values), testbed="netns")
    _, _, found, _ = past_runs(tmp_path, "p")
    (trend,) = trends(found, "throughput_bps", "bulk")
    assert [one.first for one in trend.levels] == [0, 16]
    assert trend.levels[1].direction == "worse"
    (short,) = trends(found[:8], "throughput_bps")
    assert (len(short.levels), short.enough) == (1, False)
    print_history("p", found[:8], (short,), True, 3)
    assert "1 of them have fewer than 10 runs: no change could be found" in capsys.readouterr().out


def test_what_a_history_is_made_of(tmp_path: Path) -> None:
    """Runs of one plan and testbed; repetitions by their median; points that failed to be measured not at all."""
    for day in range(3):
        points = [
            Given(f"a{n}", metrics={"throughput_bps": v}, packets=None, repeat=n) for n, v in enumerate((1.5, 9.5, 2.5))
        ]
        bad = Given("b", [TUPLES[0]], {"throughput_bps": 4.5}, packets=None, verdict="broken")
        write_run(tmp_path / f"n{day}", [*points, bad], days=day)
    write_run(tmp_path / "other", [Given()], plan="q", days=9)
    write_run(tmp_path / "netns", [Given()], days=1, testbed="netns")
    (tmp_path / "latest").symlink_to("n2")
    for number, text in enumerate(FOREIGN):
        (tmp_path / f"torn{number}").mkdir()
        (tmp_path / f"torn{number}" / "summary.json").write_text(text)
    plan, bed, found, damaged = past_runs(tmp_path, "p")
    assert (plan, bed, [run.name for run in found]) == ("p", "lab", ["n0", "n1", "n2"])
    places = [words.partition(": ")[0] for words in damaged]
    assert places == [str(tmp_path / f"torn{number}" / "summary.json") for number in range(len(FOREIGN))]
    (trend,) = trends(found)
    assert trend.values == (2.5, 2.5, 2.5)
    assert trends(found, least_runs=4) == ()
    assert past_runs(tmp_path)[0] == "q"
    with pytest.raises(PlanError, match="want finished runs of plan z; got runs of: p, q"):
        past_runs(tmp_path, "z")
    with pytest.raises(PlanError, match="want a directory of runs"):
        past_runs(tmp_path / "nowhere")
