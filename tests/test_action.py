# SPDX-License-Identifier: Apache-2.0
"""action.yml: its shell steps, run in a repository of a user as a runner does it; the actions that it uses."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from testctl.system import checkout

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [reno, cubic]]
  - [switch:receiver, rate, 100mbit]
  - [bulk, bytes, 50kB]
expect:
  - {name: soon, metric: completion_time_s, max: 10}
  - name: late
    metric: completion_time_s
    min: 10
    when: {hosts.cc: cubic}
"""


@dataclass
class Job:
    """A job of GitHub Actions: what the runner keeps between steps."""

    workspace: Path
    temp: Path
    inputs: dict[str, str]
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    def value(self, expression: str) -> str:
        """An expression of action.yml, of the few kinds that it has."""
        kind, _, name = expression.partition(".")
        if kind == "inputs":
            return self.inputs.get(name, str(ACTION["inputs"][name].get("default", "")))
        if kind == "steps":
            step, _, output = name.partition(".outputs.")
            return self.outputs[step][output]
        return {"runner.temp": str(self.temp), "runner.arch": "X64"}[expression]

    def filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: self.value(found[1]), text)

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """A shell step, as the runner calls it."""
        (step,) = (step for step in STEPS if step["name"] == name)
        output = self.temp / "output"
        output.write_text("")
        env = {key: self.filled(value) for key, value in step["env"].items()}
        runner = {
            "GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "HOME": str(self.temp), "PATH": os.environ["PATH"],
        }  # fmt: skip
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            argv, cwd=self.workspace, env=runner | env, capture_output=True, text=True, timeout=900, check=False
        )
        if "id" in step:
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A user's repository with a plan, and a runner that has this machine's kernels in its cache."""
    workspace, temp = tmp_path / "repository", tmp_path / "temp"
    (workspace / "tests").mkdir(parents=True)
    temp.mkdir()
    (workspace / "tests" / "mine.yaml").write_text(PLAN)
    (temp / "testctl-cache").symlink_to(checkout.cache_dir())
    return Job(workspace, temp, {"plan": "tests/mine.yaml\n"})


@pytest.mark.lab
@pytest.mark.timeout(1800)
def test_the_steps_in_a_repository_of_a_user(job: Job) -> None:
    assert job.run("What the kernels are built from").returncode == 0
    key = job.outputs["key"]["key"]
    assert re.fullmatch(r"[0-9a-f]{64}", key)
    done = job.run("Set up")
    assert done.returncode == 0, done.stdout + done.stderr
    job.inputs |= {"set": "sender.initcwnd=10\n", "jobs": "1"}
    done = job.run("Run the plans")
    assert done.returncode == 1, done.stdout + done.stderr
    assert job.outputs["run"]["code"] == "1"
    (annotation,) = re.findall(r"^::error .*", done.stdout, re.MULTILINE)
    head, _, text = annotation.removeprefix("::error ").partition("::")
    assert head == "file=tests/mine.yaml,line=9,col=5,title=mine completion_time_s"
    assert text.startswith("cc=cubic: fail: late: completion_time_s of bulk: want at least 10 s; got 4.")
    suite = ET.parse(job.workspace / "testctl-results" / "junit" / "1-mine.xml").getroot()[0]
    assert {one.get("name"): len(one.findall("failure")) for one in suite} == {"cc=reno": 0, "cc=cubic": 1}
    (failed,) = (one for one in suite if one.find("failure") is not None)
    assert (failed.get("file"), failed.get("line")) == ("tests/mine.yaml", "9")
    properties = {one.get("name"): one.get("value") for one in failed.iter("property")}
    assert str(properties["bulk.completion_time_s"]).endswith(" ms")
    assert properties["sender.initcwnd"] == "10"
    summary = (job.temp / "summary.md").read_text()
    assert "**failed**: 1 pass, 1 fail\n" in summary
    assert "| fail | late | " in summary
    (step,) = (step for step in STEPS if step["name"] == "Keep the results")
    kept = [job.filled(line) for line in step["with"]["path"].splitlines() if not line.startswith("!")]
    assert all(list(job.workspace.glob(pattern)) for pattern in kept), kept
    assert (
        json.loads((job.workspace / "testctl-results" / "latest" / "summary.json").read_text())["counts"]["fail"] == 1
    )


def test_an_error_in_a_plan_is_an_annotation(job: Job) -> None:
    (job.workspace / "tests" / "mine.yaml").write_text(PLAN.replace("100mbit", "100mbitt"))
    done = job.run("Run the plans")
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(r"^::error file=tests/mine.yaml,line=5,col=\d+,title=plan::.*100mbitt", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("inputs", "step", "said"),
    [
        ({"plan": ""}, "Run the plans", "plan: want at least one plan; got none"),
        ({"plan": "no.yaml"}, "Set up", "plan: want files of this repository; there is no no.yaml"),
        (
            {"source": "linux"},
            "What the kernels are built from",
            "source: want a directory of this repository; got linux",
        ),
        ({"plan": "$(touch owned)"}, "Run the plans", "there is no $(touch owned)"),
    ],
)
def test_wrong_inputs(job: Job, inputs: dict[str, str], step: str, said: str) -> None:
    job.inputs |= inputs
    done = job.run(step)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(job.workspace.glob("owned"))


def test_the_key_changes_with_the_tree_and_the_kernels(job: Job) -> None:
    tree = job.workspace / "linux"
    tree.mkdir()

    def key(**inputs: str) -> str:
        job.inputs = inputs
        assert job.run("What the kernels are built from").returncode == 0
        return job.outputs["key"]["key"]

    def commit(text: str) -> None:
        (tree / "tcp.c").write_text(text)
        for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", text]):
            subprocess.run(["git", "-C", str(tree), *words], check=True)

    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    commit("one")
    first = key(source="linux")
    assert first == key(source="linux")
    commit("two")
    assert len({first, key(source="linux"), key(), key(kernel="6.1")}) == 4


def test_the_action_pins_what_it_uses_and_interpolates_no_input_into_a_shell() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used), "a tag can be moved"
    workflows = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    assert all(f"uses: {one} # v" in text and one in workflows for one in used)
    shells = [step for step in STEPS if "run" in step]
    assert all(step["shell"] == "bash" and "${{" not in step["run"] for step in shells)
    names = set(re.findall(r"inputs\.(\w+)", text))
    assert names == set(ACTION["inputs"])
    assert all(one["description"] for one in (*ACTION["inputs"].values(), *ACTION["outputs"].values()))


TESTCTL = """#!/bin/sh
case "$1" in
lab) ! grep -q unbuildable tcp.c ;;
run) grep -q broken tcp.c && exit 3; ! grep -q slow tcp.c ;;
esac
"""
"""A stand-in for builds of kernels, which take minutes: its exit codes are those of testctl."""


def test_the_documented_bisection_finds_the_commit_and_skips_what_can_not_be_tested(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"git bisect start BAD GOOD\n(git bisect run .*?)\n```", page, re.DOTALL)
    program = tmp_path / "bin" / "testctl"
    program.parent.mkdir()
    program.write_text(TESTCTL)
    program.chmod(0o755)
    tree = tmp_path / "linux"
    env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def shell(text: str) -> str:
        return subprocess.run(
            ["bash", "-c", text], cwd=tree, env=env, capture_output=True, text=True, check=True
        ).stdout

    tree.mkdir()
    shell("git init -q . && git config user.name a && git config user.email a@b")
    for name in ("good", "fast", "unbuildable", "fine", "slow 1", "slow 2", "broken slow", "slow 3"):
        (tree / "tcp.c").write_text(name)
        shell(f"git add tcp.c && git commit -qm '{name}'")
    shell("git bisect start HEAD HEAD~7")
    assert "is the first bad commit" in shell(script)
    assert shell("git log -1 --format=%s refs/bisect/bad").strip() == "slow 1"
