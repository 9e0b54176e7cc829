# SPDX-License-Identifier: Apache-2.0
"""Runs in wall-clock time: cells of repetitions, judged by statistics; the order in which repetitions are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from testctl.compare import changed_points, changes, judge_runs, print_statistical
from testctl.compare.statistical import Statistical
from testctl.execution.run import in_turns
from testctl.plan import load_plan
from testctl.results import Run

from controller.tests.compare.written import TUPLES, Given, write_run

OTHER = (("hosts", "cc", "bbr"), TUPLES[1])


def given(values: Sequence[float], name: str = "a", tuples: Sequence[tuple[str, str, str]] = TUPLES) -> list[Given]:
    """One repetition for each throughput; latency is its inverse."""
    return [
        Given(
            f"{name}{number:03}",
            tuples,
            {"throughput_bps": value, "latency_mean_us": 1e6 / value, "wire_bytes": 1000 + number, "drops": 0},
            packets=None,
            repeat=number,
        )
        for number, value in enumerate(values)
    ]


def noisy(mean: float, seed: int, count: int = 10) -> list[float]:
    return list(np.random.default_rng(seed).normal(mean, 0.004 * mean, count))


def run(where: Path, points: Sequence[Given]) -> Run:
    return write_run(where, points, testbed="netns")


def said(found: Statistical) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (cell.cell.tuples[0][2], one.metric): (one.said, one.direction)
        for cell in found.cells
        for one in cell.judgements
    }


def test_what_changed_is_told_from_what_did_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = run(tmp_path / "a", [*given(noisy(1000, 1)), *given(noisy(1000, 2), "x", OTHER)])
    b = run(tmp_path / "b", [*given(noisy(1000, 3)), *given(noisy(980, 4), "x", OTHER)])
    found = judge_runs([a], [b])
    assert said(found) == {
        ("cubic", "throughput_bps"): ("no evidence", "other"),
        ("cubic", "latency_mean_us"): ("no evidence", "other"),
        ("cubic", "drops"): ("no evidence", "other"),
        ("bbr", "throughput_bps"): ("changed", "worse"),
        ("bbr", "latency_mean_us"): ("changed", "worse"),
        ("bbr", "drops"): ("no evidence", "other"),
    }
    assert (found.worse, found.comparisons) == (True, 4)
    (one,) = [j for cell in found.cells for j in cell.changed if j.metric == "throughput_bps"]
    assert one.relative_interval is not None
    assert one.relative_interval[0] < -0.02 < one.relative_interval[1] < -0.01
    assert one.tested.effect < -0.9
    print_statistical(found, Console(width=200))
    out = capsys.readouterr().out
    assert "changed (worse)" in out
    assert "2 points, 6 metrics, of which 4 vary: 2 changed, 4 without evidence, 0 with too few samples" in out


def test_a_run_is_compared_with_the_one_before_as_its_testbed_wants(tmp_path: Path) -> None:
    """Digests of runs in wall-clock time always differ; which of their points have changed is another matter."""
    points = [*given(noisy(1000, 1)), *given(noisy(1000, 2), "x", OTHER)]
    later = [*given(noisy(1000, 3)), *given(noisy(980, 4), "x", OTHER)]
    a, b = run(tmp_path / "a", points), run(tmp_path / "b", later)
    found = changes(a, b)
    assert found.to_json()["how"] == "statistics"
    assert changed_points(found) == {f"x{number:03}" for number in range(10)}
    exact = changes(write_run(tmp_path / "c", points), write_run(tmp_path / "d", later))
    assert exact.to_json()["how"] == "exact"
    assert changed_points(exact) == {one.id for one in later}


def test_an_improvement_is_no_failure(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", given(noisy(980, 1))), run(tmp_path / "b", given(noisy(1000, 2)))
    better = judge_runs([a], [b])
    assert (better.worse, better.differs) == (False, True)
    assert said(better)["cubic", "throughput_bps"] == ("changed", "better")
    assert judge_runs([b], [a]).worse
    assert not judge_runs([b], [a], least=0.05).differs


def test_too_few_samples_are_said_to_be(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", given([1000, 1001, 1002])), run(tmp_path / "b", given([900, 901, 902]))
    found = judge_runs([a], [b], ["throughput_bps"])
    assert said(found) == {("cubic", "throughput_bps"): ("too few samples", "other")}
    assert (found.worse, found.needed) == (False, 5)
    more = judge_runs([a, a], [b, b], ["throughput_bps"])
    assert said(more) == {("cubic", "throughput_bps"): ("changed", "worse")}


def test_what_else_may_distinguish_runs_is_said(tmp_path: Path) -> None:
    a, b, c = (
        write_run(tmp_path / name, given(noisy(1000, day)), days=day, testbed="netns", jobs=jobs)
        for day, (name, jobs) in enumerate((("a", 1), ("b", 1), ("c", 2)))
    )
    turns = "the runs were not interleaved: changes of the machine between them look like changes of the code"
    assert judge_runs([a], [b]).doubts == (turns,)
    assert judge_runs([b], [a, c]).doubts == ("other points at once: 1 and 1, 2",)
    assert judge_runs([a], [a]).doubts == ()


def test_a_chosen_metric_need_not_prefer_a_direction(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a", given(noisy(1000, 1))), run(tmp_path / "b", given(noisy(1000, 2)))
    found = judge_runs([a], [b], ["wire_bytes"])
    assert said(found) == {("cubic", "wire_bytes"): ("no evidence", "other")}


def test_a_cell_is_worse_by_what_decides_it(tmp_path: Path) -> None:
    """The mean of the latency is no headline; where it was chosen, or a plan expects something of it, it decides."""
    a, b = run(tmp_path / "a", given(noisy(1000, 1))), run(tmp_path / "b", given(noisy(980, 2)))
    assert [cell.direction for cell in judge_runs([a], [b], ["latency_mean_us"]).cells] == ["worse"]
    c, d = (
        run(where, [replace(one, metrics={**one.metrics, "throughput_bps": 1e3}) for one in given(noisy(mean, seed))])
        for where, mean, seed in ((tmp_path / "c", 1000, 1), (tmp_path / "d", 980, 2))
    )
    found = judge_runs([c], [d])
    assert said(found)["cubic", "latency_mean_us"] == ("changed", "worse")
    assert ([cell.direction for cell in found.cells], found.differs, found.worse) == (["other"], True, False)


def test_only_what_was_measured_counts(tmp_path: Path) -> None:
    """Numbers of invalid points are none, but that there are some now is worse."""
    points = given(noisy(1000, 1))
    wild = [replace(p, verdict="invalid", metrics={"throughput_bps": 1.0}) for p in given([1.0] * 5, "z")]
    b = run(tmp_path / "b", [*given(noisy(1000, 2)), *(replace(p, repeat=20 + p.repeat) for p in wild)])
    found = judge_runs([run(tmp_path / "a", points)], [b])
    (cell,) = found.cells
    assert (cell.changed, cell.verdict_direction, found.worse) == ((), "worse", True)
    assert cell.verdicts == ({"pass": 10}, {"pass": 10, "invalid": 5})


def test_cells_that_are_gone_are_worse(tmp_path: Path) -> None:
    a = run(tmp_path / "a", [*given(noisy(1000, 1)), *given(noisy(1000, 2), "x", OTHER)])
    b = run(tmp_path / "b", given(noisy(1000, 3)))
    assert judge_runs([a], [b]).worse
    back = judge_runs([b], [a])
    assert (back.worse, back.differs) == (False, True)


PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
repeat: 3
tuples: [[hosts, cc, [cubic, reno]], [bulk, duration, 1s]]
"""


def test_in_wall_clock_time_repetitions_take_turns() -> None:
    plan = load_plan(PLAN, testbed="netns")
    order = [(point.repeat, point.tuples[0][2]) for point in in_turns(plan)]
    assert order == [(number, cc) for number in range(3) for cc in ("cubic", "reno")]
    assert in_turns(load_plan(PLAN)) == load_plan(PLAN).points
