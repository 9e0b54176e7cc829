# SPDX-License-Identifier: Apache-2.0
"""A plan with a topology of its own: the run keeps it, so that what comes later needs the file no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.results import load_run
from testctl.results.provenance import plan_of
from testctl.shrink.case import candidate, open_case, plan_text, topology_file

from tests.cli_commands import call

MINE = """
parameters: {senders: {default: 1, least: 1, most: 9}}
nodes: {a: {kind: host, count: senders}, b: {kind: host}, s: {kind: switch}}
links: [{each: [a, s]}, {each: [b, s]}]
"""
PLAN = """
topology: {./nets/mine.yaml: {senders: 2}}
flows: {bulk: a1 -> b}
tuples:
  - [hosts, cc, cubic]
  - [s:b, rate, 10mbit]
  - [bulk, duration, 100ms]
expect:
  - {name: something arrives, metric: throughput_bps, min: 1kbit}
"""


@pytest.mark.lab
def test_a_topology_beside_the_plan_from_the_dry_run_to_a_replay(tmp_path: Path) -> None:
    (tmp_path / "plans" / "nets").mkdir(parents=True)
    mine, path = tmp_path / "plans" / "nets" / "mine.yaml", tmp_path / "plans" / "own.yaml"
    mine.write_text(MINE)
    path.write_text(PLAN)

    def testctl(*words: str, code: int = 0) -> str:
        done = call(tmp_path, *words, code=code)
        return done.stdout + done.stderr

    assert "1 point" in testctl("plan", "plans/own.yaml")
    testctl("run", "plans/own.yaml", "--out", "results/one")
    assert (tmp_path / "results" / "one" / "topology.yaml").read_text() == MINE
    testctl("run", "plans/own.yaml", "--out", "results/two", "--resume")
    (again,) = load_run(tmp_path / "results" / "two").points
    assert again.verdict_file.reused_from == "one"
    mine.unlink()
    assert "can't be read: No such file" in testctl("plan", "plans/own.yaml", code=2)
    run = load_run(tmp_path / "results" / "one")
    (point,) = run.points
    assert "the same" in testctl("replay", "results/one", point.id, "--out", "results/three")
    assert (tmp_path / "results" / "three" / "topology.yaml").read_text() == MINE
    assert [p.id for p in plan_of(run).points] == [point.id]
    case = open_case(run, point.id, "", holds=True)
    assert candidate(case, case.tuples).point.id == point.id
    assert f"topology: {{./{topology_file(case)}: {{senders: 2}}}}" in plan_text(case, case.tuples)
