# SPDX-License-Identifier: Apache-2.0
"""`testctl papers` from end to end, in the lab."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from controller.tests.report.reading import text_of
from tests.cli_commands import call

pytestmark = pytest.mark.lab

PLAN = """
about: a short flow
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, kernel, "6.12"]
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 2ms]
  - [bulk, bytes, 200kB]
expect:
  - name: the round trip is that of the path
    metric: rtt_mean_us
    paper: {{source: "the plan itself", published: {published}, within: 0.5{why}}}
  - {{name: nothing is lost, metric: packets_lost, equals: 0, paper: {{source: "the plan itself", published: no loss}}}}
"""


def papers(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = ["papers", str(where / "short.yaml"), "--out", str(where / "out"), *words]
    return call(Path.cwd(), *argv, code=None, TMPDIR=where)


def test_a_plan_becomes_a_scorecard(tmp_path: Path) -> None:
    plan = tmp_path / "short.yaml"
    plan.write_text(PLAN.format(published="5ms", why=""), encoding="utf-8")
    done = papers(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads((tmp_path / "out" / "scorecard.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in said["claims"]] == ["reproduced", "holds"]
    assert 4000 < said["claims"][0]["ours"]["mean"] < 8000
    assert f"digest  {said['digest']}" in done.stdout.splitlines()
    assert (tmp_path / "out" / "scorecard.png").stat().st_size > 1000
    (run,) = (Path(plan["run"]) for plan in said["plans"])
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["claims"] == said["claims"]
    assert "the plan itself" in text_of(run / "report.html")

    again = papers(tmp_path)
    assert again.returncode == 2
    assert "the scorecard exists already" in again.stderr

    plan.write_text(PLAN.format(published="1s", why=""), encoding="utf-8")
    differs = papers(tmp_path, "--resume", "--json")
    assert differs.returncode == 1, differs.stderr
    found = json.loads(differs.stdout)
    assert found["digest"] == said["digest"]
    assert found["open"] == ["short: the round trip is that of the path: differs, and its `why` is missing"]

    plan.write_text(PLAN.format(published="1s", why=", why: the paper's path is longer"), encoding="utf-8")
    assert papers(tmp_path, "--resume").returncode == 0

    plan.write_text(PLAN.format(published="", why=""), encoding="utf-8")
    bad = papers(tmp_path, "--resume")
    assert bad.returncode == 2
    assert f"{plan}:14:" in bad.stderr
    assert "paper: published: want a number or text; got nothing" in bad.stderr
