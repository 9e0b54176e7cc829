# SPDX-License-Identifier: Apache-2.0
"""`testctl nightly` from end to end, in the lab: two equal runs, an interrupted one, and what is printed about them."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from testctl.results import load_run

from tests.cli_commands import TESTCTL, call

pytestmark = pytest.mark.lab

PLAN = """
about: a small nightly run
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [switch:receiver, rate, [100mbit, 20mbit]]
  - [switch:receiver, buffer, 60kB]
  - [switch, delay, 2ms]
  - [bulk, duration, 100ms]
design: {cover: 1}
expect:
  - {name: slow, metric: goodput_bps, max: MOST}
"""


def argv(where: Path, *words: str) -> list[str]:
    return [*TESTCTL, "nightly", str(where / "small.yaml"), *words]


def night(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call(where, "nightly", str(where / "small.yaml"), *words, code=None)


def plan(where: Path, most: str = "1gbit") -> None:
    (where / "small.yaml").write_text(PLAN.replace("MOST", most), encoding="utf-8")


def newest(where: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((where / "results" / "latest" / "summary.json").read_text(encoding="utf-8"))
    return found


def test_two_nights_are_the_same_and_a_failure_comes_first_in_the_next(tmp_path: Path) -> None:
    """Between the two one with other tuples, which is a series of its own."""
    plan(tmp_path)
    first = night(tmp_path, "--budget", "1h", "--jobs", "2")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "the first nightly run of this plan here" in first.stdout
    one = newest(tmp_path)
    assert one["nightly"]["ended_by"] == "all points run"
    assert one["nightly"]["since"] is None
    words = ("--set", "hosts.cc=reno", "--without", "switch.delay")
    between = night(tmp_path, "--budget", "1h", *words)
    assert between.returncode == 0, between.stdout + between.stderr
    other = newest(tmp_path)
    assert other["nightly"]["since"] is None
    assert all(word in other["reproduce"] for word in words)
    like = night(tmp_path, "--like", f"results/{other['run']}")
    assert like.returncode == 2
    assert "want a run with the same --testbed, --set and --without; it was made by: testctl nightly" in like.stderr
    second = night(tmp_path, "--budget", "1h", "--jobs", "2", "--captures")
    assert second.returncode == 0, second.stdout + second.stderr
    two = newest(tmp_path)
    assert two["digest"] == one["digest"]
    assert two["run"] != one["run"]
    assert two["nightly"]["since"] == one["run"]
    assert f"since {one['run']}" in second.stdout
    assert f"no difference: {len(one['points'])} points with the same digests" in second.stdout
    kept = [len(run.points[0].captures()) for run in map(load_run, sorted((tmp_path / "results").glob("2*")))]
    assert kept == [0, 0, 2]

    plan(tmp_path, most="30mbit")  # not at 100 Mb/s
    third = night(tmp_path, "--budget", "1h", "--jobs", "2", "--json")
    assert third.returncode == 1, third.stdout + third.stderr
    said = json.loads(third.stdout)
    failed = {point["id"] for point in said["summary"]["points"] if point["verdict"] == "fail"}
    assert failed
    assert one["points"][0]["id"] not in failed
    assert said["changed"]["since"] == two["run"]
    assert {one["id"] for one in said["changed"]["differences"]} == failed
    assert said["summary"]["digest"] == one["digest"], "the packets are the same, only the verdicts are not"
    tight = night(tmp_path, "--like", f"results/{one['run']}", "--budget", "1s")
    assert tight.returncode == 1, tight.stdout + tight.stderr
    assert [p["id"] for p in newest(tmp_path)["points"]] == [p["id"] for p in one["points"]], "in its order"
    fifth = night(tmp_path, "--budget", "1h", "--jobs", "2")
    assert fifth.returncode == 1
    assert set(newest(tmp_path)["nightly"]["first"]) == failed
    assert {point["id"] for point in newest(tmp_path)["points"][: len(failed)]} == failed


def test_a_night_of_two_plans_is_as_bad_as_the_worst(tmp_path: Path) -> None:
    """Each is a series of its own; a plan that is wrong ends the command before any is run."""
    plan(tmp_path, most="30mbit")
    (tmp_path / "second.yaml").write_text(PLAN.replace("MOST", "1gbit"), encoding="utf-8")
    for _ in range(2):
        both = night(tmp_path, "second.yaml", "--budget", "1h", "--json")
        assert both.returncode == 1, both.stdout + both.stderr
    small, second = json.loads(both.stdout)
    assert [one["summary"]["plan"] for one in (small, second)] == ["small", "second"]
    assert [{one["verdict"] for one in of["summary"]["expectations"]} for of in (small, second)] == [{"fail"}, {"pass"}]
    for one in (small, second):
        assert one["changed"]["since"].endswith(one["summary"]["plan"])
        assert one["changed"]["differences"] == []
    known = len(list((tmp_path / "results").glob("2*")))
    like = night(tmp_path, "second.yaml", "--like", "results/latest")
    assert like.returncode == 2
    assert "--like results/latest: want the plan of that run; got 2 plans" in like.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "second.yaml").write_text(PLAN, encoding="utf-8")
    same = night(tmp_path, "second.yaml", "other/second.yaml")
    assert same.returncode == 2
    assert "other/second.yaml: want plans of different names; second.yaml is named second too" in same.stderr
    wrong = night(tmp_path, "third.yaml")
    assert wrong.returncode == 2
    assert "third.yaml" in wrong.stderr
    assert len(list((tmp_path / "results").glob("2*"))) == known, "nothing was run"


def test_an_interrupted_night_is_gone_on_with(tmp_path: Path) -> None:
    plan(tmp_path)
    with subprocess.Popen(
        argv(tmp_path, "--budget", "1h", "--jobs", "1"), cwd=tmp_path, stderr=subprocess.PIPE
    ) as child:
        until = time.monotonic() + 300
        while time.monotonic() < until and not list(tmp_path.glob("results/*/points/[0-9a-f]*/verdict.json")):
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        assert child.stderr is not None
        said = child.stderr.read().decode()
    assert child.returncode == 130, said
    assert "finished points are kept, go on with --resume" in said
    done = {path.parent.name for path in tmp_path.glob("results/*/points/[0-9a-f]*/verdict.json")}
    assert done
    again = night(tmp_path, "--budget", "1h", "--jobs", "1", "--resume")
    assert again.returncode == 0, again.stdout + again.stderr
    assert {point["id"] for point in newest(tmp_path)["points"] if "reused_from" in point} == done


def test_a_budget_that_holds_nothing_and_words_that_are_wrong(tmp_path: Path) -> None:
    plan(tmp_path)
    for words, want in (
        (("--budget", "soon"), "--budget: want a time such as 90s, 30m or 2h; got 'soon'"),
        (("--budget", "100ms"), "--budget: want a time such as 90s, 30m or 2h; got '100ms'"),
        (("--budget", "0s"), "--budget: want more than no time; got '0s'"),
        (("--budget", "1s"), "--budget: want time for one point of small at least; 1 s is not enough"),
        (("--like", "results"), "want the directory of a run"),
        (("--wait", "2h"), "--wait: want an inventory, whose machines may be leased to others; got --testbed lab"),
        (("--testbed", "nowhere"), "--testbed: want lab, netns or an Ansible inventory; got 'nowhere'"),
        (("--set", "hosts.kernel=5.99"), "5.99"),
    ):
        done = night(tmp_path, *words)
        assert done.returncode == 2, done.stdout + done.stderr
        assert want in done.stderr
