# SPDX-License-Identifier: Apache-2.0
"""What can't be replayed, and what a run's code and kernel are told apart by."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.lab.kernel_lists import CCS, FIXED, SYSCTLS
from testctl.plan import Judgement, load_plan
from testctl.replay.command import differences, lab_for, replay
from testctl.replay.instruments import Instruments
from testctl.results import Run, RunPoint
from testctl.results.provenance import point_of
from testctl.results.verdict_file import VerdictFile
from testctl.results.versions import collect_versions
from testctl_agent.spec.errors import PlanError, TestbedError

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 100ms]
  - [bulk, start, 5ms]
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run as it lies on disk, as far as is looked at before anything starts."""
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))  # no kernel is built there
    points = load_plan(PLAN).points
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "plan.expanded.json").write_text(json.dumps({"points": [point.to_json() for point in points]}))
    (tmp_path / "versions.json").write_text(json.dumps(collect_versions()))
    passed = Judgement("pass")
    files = [VerdictFile(point.id, passed, passed, code_key="k-c-p") for point in points]
    found = [RunPoint(tmp_path, file.id, (), "pass", "", "", 1.0, 1.0, {}, file) for file in files]
    return Run(tmp_path, {}, tuple(found))


def test_a_point_is_what_the_plan_made_of_it(run: Run) -> None:
    for point in load_plan(PLAN).points:
        again = point_of(run, load_plan(PLAN), point.id)
        assert again == point
        assert again.flows[0].options["start"] == 5_000_000


def test_a_run_elsewhere_is_refused(run: Run, tmp_path: Path) -> None:
    elsewhere = replace(run, summary={"testbed": "netns"})
    with pytest.raises(PlanError, match="ran on netns; only in the lab, in virtual time, is a point the same again"):
        replay(elsewhere, run.points[0].id, Instruments(), tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_point_that_its_plan_does_not_make_is_refused(run: Run) -> None:
    (run.path / "plan.yaml").write_text(PLAN + "seed: 7\n")
    with pytest.raises(PlanError, match="can't be made again from its plan"):
        replay(run, run.points[0].id, Instruments(), run.path / "out", run.path)


@pytest.mark.parametrize("place", ["expanded", "overrides"])
def test_nothing_that_lies_in_a_run_is_run(run: Run, place: str) -> None:
    """A run from elsewhere whose point names a kernel by a path into that run."""
    program, ran = run.path / "k-0123456789abcdef" / "linux", run.path / "ran"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nid > {ran}\n")
    program.chmod(0o755)
    (run.path / "k.name").write_text(program.parent.name)
    point, name = run.points[0], str(run.path / "k")
    if place == "expanded":
        written = json.loads((run.path / "plan.expanded.json").read_text())
        for one in written["points"]:
            one["settings"]["sender"]["kernel"] = one["settings"]["receiver"]["kernel"] = name
        (run.path / "plan.expanded.json").write_text(json.dumps(written))
        with pytest.raises(TestbedError, match=r"kernel 6\.12"):
            replay(run, point.id, Instruments(), run.path / "out", run.path)
    else:
        changed = replace(run, summary={"overrides": [f"hosts.kernel='{name}'"]})
        with pytest.raises(PlanError, match=r"want a version such as 6\.12, or the name of a kernel"):
            replay(changed, point.id, Instruments(), run.path / "out", run.path)
    assert not ran.exists()
    assert not (run.path / "out").exists()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("k-c-p", ()),
        ("x-c-p", ("another kernel",)),
        ("k-x-x", ("other agents, tgen or first process of the lab", "another program of the switch")),
        ("k-c", ("another program of the switch",)),
        ("k-c-p+tcp_events", ()),
        ("k-c-p-2048", ("another memory of the lab",)),
        ("k-c--2048", ("another program of the switch", "another memory of the lab")),
    ],
)
def test_what_differs_from_the_run(run: Run, key: str, said: tuple[str, ...]) -> None:
    assert [word for word in differences(run, run.points[0], key) if "then" not in word] == list(said)


def _build(kernels: Path, name: str, *keys: str) -> None:
    """What is read of a kernel in the cache before it boots; the last one is that of the name."""
    for key in keys:
        (kernels / f"{name}-{key}").mkdir(parents=True)
        for file, text in {"linux": "", SYSCTLS: "net.ipv4.tcp_ecn", FIXED: "net.core.x", CCS: "cubic\nreno"}.items():
            (kernels / f"{name}-{key}" / file).write_text(text)
    (kernels / f"{name}.name").write_text(f"{name}-{keys[-1]}")


def test_the_kernel_is_that_of_the_run_whatever_was_built_last(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are of --source, under one name; which one is reported before the point runs."""
    first, last = "0" * 16, "1" * 16
    kernels = tmp_path / "cache" / "kernels"
    _build(kernels, "source", first, last)
    (point, *_) = load_plan(PLAN, overrides=["hosts.kernel=source"]).points
    passed = Judgement("pass")
    found = replace(run.points[0], verdict_file=VerdictFile(point.id, passed, passed, code_key=f"{first}-c-p"))
    assert lab_for(found, point, False).kernels["source"].key == first
    assert capsys.readouterr().err == ""
    shutil.rmtree(kernels / f"source-{first}")
    assert lab_for(found, point, False).kernels["source"].key == last
    said = capsys.readouterr().err
    assert said.startswith(f"the kernel of the run, source-{first}, is not in the cache any more: point ")
    assert f"runs on source-{last}, and may differ" in said


def test_each_of_several_kernels_is_that_of_the_run(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receiver's is gone: it is another one then, and only it is reported."""
    first, last = "0" * 16, "1" * 16
    _build(tmp_path / "cache" / "kernels", "new", first, last)
    _build(tmp_path / "cache" / "kernels", "old", last)
    words = ["sender.kernel=new", "receiver.kernel=old", "switch.delay=5us"]
    (point, *_) = load_plan(PLAN, overrides=words).points
    passed = Judgement("pass")
    found = replace(run.points[0], verdict_file=VerdictFile(point.id, passed, passed, code_key=f"{first},{first}-c-p"))
    lab = lab_for(found, point, False)
    assert {name: kernel.key for name, kernel in lab.kernels.items()} == {"new": first, "old": last}
    said = capsys.readouterr().err
    assert said.startswith(f"the kernel of the run, old-{first}, is not in the cache any more: point ")
    assert said.count("the kernel of the run") == 1


def test_versions_are_named_with_the_difference(run: Run) -> None:
    (run.path / "versions.json").write_text(json.dumps({**collect_versions(), "commit": "cafe"}))
    assert any(word.startswith("commit cafe then, ") for word in differences(run, run.points[0], "x-c-p"))
    assert differences(run, run.points[0], "k-c-p") == ()
