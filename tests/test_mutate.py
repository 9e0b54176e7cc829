# SPDX-License-Identifier: Apache-2.0
"""`testctl mutate` with a kernel that is really built: what plans detect, and that no mutant is active without one."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.cli.runs import load
from testctl.lab.source import tarball_of
from testctl.mutate.build import build, read, tree
from testctl.mutate.c_source import Source
from testctl.mutate.campaign import MUTANTS, POINTS, Bench
from testctl.mutate.detect import Campaign, detections
from testctl.mutate.draw import Mutant
from testctl.mutate.operators import sites
from testctl.mutate.report import rows
from testctl.mutate.trial import run_point
from testctl.testbeds.lab import LabTestbed

from tests import cli_commands

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(tarball_of("6.12") is None, reason="linux-source-6.12 is not installed"),
]

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 10ms]
  - [switch, fate, "drop data 200 of bulk, first"]
  - [bulk, duration, 500ms]
expect:
  - {name: the link is used, metric: throughput_bps, min: 20000000}
"""
CONG, RECOVERY, INPUT = (f"net/ipv4/tcp_{name}.c" for name in ("cong", "recovery", "input"))
CHOSEN = {
    "expectation": (CONG, "tcp_slow_start", "arithmetic", "tcp_snd_cwnd(tp) + acked", ""),
    "rule": (RECOVERY, "tcp_rack_reo_wnd", "negated", "tp->sacked_out >= tp->reordering", ""),
    "survived": (INPUT, "tcp_rcv_established", "fixed", "!th->ack && !th->rst && !th->syn", "false"),
    "not reached": (INPUT, "tcp_check_urg", "removed", "ptr--;", ""),
    "no program": (CONG, "tcp_reno_ssthresh", "constant", "1U", "2U"),
}
"""Verdict -> a mutant: file, function, operator, what its code begins with, and its mutated code."""


def drawn(texts: dict[str, bytes]) -> list[Mutant]:
    mutants = []
    for number, (verdict, (name, function, operator, old, new)) in enumerate(CHOSEN.items(), 1):
        of_function = [s for s in sites(Source(name, texts[name])) if (s.function, s.operator) == (function, operator)]
        site = next(s for s in of_function if s.old.startswith(old) and s.new.startswith(new))
        if verdict == "no program":
            site = replace(site, instead="(testctl_is(@) ? not_declared : 1U)")
        mutants.append(Mutant(number, site))
    return mutants


def test_what_a_plan_detects(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    plan = load(tmp_path / "plan.yaml", "lab", None, "6.12", 10)
    origin = tree("6.12", None)
    texts = read(origin, [CONG, RECOVERY, INPUT])
    mutants = drawn(texts)
    before = [(origin.origin / name).read_bytes() for name in texts]
    kernel, absent = build(origin, texts, mutants, lambda what, done, total: None, os.cpu_count() or 1)
    assert absent == [5]
    testbed = LabTestbed.for_points(plan.points, kernels={"6.12": kernel})

    def bench() -> Bench:
        until = time.monotonic() + 600
        made = Bench(Campaign(testbed, [plan]), mutants, absent, tmp_path, 2, 12, until, lambda line: None)
        made.run()
        return made

    first = bench()
    verdicts = {number: record.verdict for number, record in first.records.items()}
    assert verdicts == {1: "expectation", 2: "rule", 3: "survived", 4: "not reached"}
    assert "the link is used" in first.records[1].detected["expectation"][2]
    assert rows(mutants, absent, first.records, lambda mutant: "")["all"]["no program"] == 1
    assert [(origin.origin / name).read_bytes() for name in texts] == before

    (point,) = plan.points
    plain = run_point(LabTestbed.for_points(plan.points), point, tmp_path / "plain")
    assert first.campaign.usual[0, point.id].raw == plain.raw, "without a mutant it is the kernel that plans get"

    lines = (tmp_path / MUTANTS).read_text()
    (tmp_path / MUTANTS).write_text("".join(lines.splitlines(keepends=True)[:2]) + lines[:10])
    again = bench()
    assert {number: record.verdict for number, record in again.records.items()} == verdicts
    assert len((tmp_path / POINTS).read_text().splitlines()) == 1
    assert sorted(json.loads(line)["number"] for line in (tmp_path / MUTANTS).read_text().splitlines()) == [1, 2, 3, 4]


def test_a_mutant_that_never_ends_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    plan = load(tmp_path / "plan.yaml", "lab", None, "6.12", 10)
    origin = tree("6.12", None)
    texts = read(origin, [INPUT])
    site = next(s for s in sites(Source(INPUT, texts[INPUT])) if (s.function, s.operator) == ("tcp_ack", "removed"))
    endless = Mutant(1, replace(site, before="{ while (testctl_is(@)) cpu_relax(); ", after=" }"))
    kernel, absent = build(origin, texts, [endless], lambda what, done, total: None, os.cpu_count() or 1)
    assert not absent
    monkeypatch.setattr("testctl.mutate.trial.MIN_WALL_S", 5.0)
    testbed = LabTestbed.for_points(plan.points, kernels={"6.12": kernel})
    (point,) = plan.points
    usual = run_point(testbed, point, tmp_path / "work")
    assert usual.reaches(1)
    assert usual.differs(1)
    ran = run_point(testbed, point, tmp_path / "work", 1, replace(usual, wall_s=0.5))
    assert list(detections(plan, point, {point.id: ran.measured})) == [("crash", "")]
    assert "was ended" in ran.measured.reason
    assert not (tmp_path / "work").exists()


def test_the_command(tmp_path: Path) -> None:
    """A run to its end, and one that is resumed: nothing is left to do; and a run of another seed is refused."""
    (tmp_path / "plan.yaml").write_text(PLAN)

    def call(*words: str, code: int = 0) -> str:
        words = ("--lines", f"{RECOVERY}:1-30", "--mutants", "3", "--out", "out", *words)
        done = cli_commands.call(tmp_path, "mutate", "plan.yaml", *words, code=code, timeout_s=1800)
        return done.stdout if code == 0 else done.stderr

    assert "mutants reached" in call()
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["mutants.jsonl", "points.jsonl", "report.json", "run.json"]
    tried = (tmp_path / "out" / MUTANTS).read_text()
    document = json.loads(call("--resume", "--json"))
    assert document == json.loads((tmp_path / "out" / "report.json").read_text())
    assert [entry["line"] <= 30 for entry in document["mutants"]] == [True] * 3
    assert (tmp_path / "out" / MUTANTS).read_text() == tried
    assert "of a run with another seed, 1; got 2" in call("--resume", "--seed", "2", code=2)
    assert "go on with --resume" in call(code=2)
