# SPDX-License-Identifier: Apache-2.0
"""A warning of the lab's kernel makes its point fail, with the kernel's words in the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.lab import boot_parameters

from controller.tests.report.reading import text_of
from tests.cli_commands import call

pytestmark = [pytest.mark.long, pytest.mark.lab]

PLAN = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, kernel, "{kernel}"]
  - [switch:receiver, rate, 100mbit]
  - [bulk, duration, 20ms]
expect:
  - {{name: something is sent, metric: throughput_bps, min: 1kbit}}
"""
WORDS = "testctl_fault: a warning on purpose"


def run(where: Path, kernel: str, boot: str) -> tuple[int, Path, str]:
    """A run of the plan with words for the kernel: exit code, its directory, what was printed."""
    plan = where / "plan.yaml"
    plan.write_text(PLAN.format(kernel=kernel), encoding="utf-8")
    out = where / (boot.partition(".")[0] or "plain")
    done = call(where, "run", str(plan), "--out", str(out), code=None, **{boot_parameters.SET: boot})
    return done.returncode, out, done.stdout + done.stderr


@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_a_warning_fails_its_point(tmp_path: Path, kernel: str) -> None:
    code, out, said = run(tmp_path, kernel, "testctl_fault.warn=1")
    assert code == 1, said
    (point,) = json.loads((out / "summary.json").read_text(encoding="utf-8"))["points"]
    assert point["verdict"] == "fail"
    assert point["reason"].startswith("the lab's kernel reports a fault of its own: ")
    assert "lab_fault.c" in point["reason"]
    assert WORDS in point["reason"]
    assert WORDS in said
    assert "a warning on purpose" in text_of(out / "report.html")


@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_a_kernel_without_a_warning_passes(tmp_path: Path, kernel: str) -> None:
    code, out, said = run(tmp_path, kernel, "")
    assert code == 0, said
    outcome = next(out.glob("points/*/outcome.json")).read_text(encoding="utf-8")
    assert "kernel_faults" not in json.loads(outcome)


def test_the_labs_own_words_are_refused(tmp_path: Path) -> None:
    code, _, said = run(tmp_path, "6.12", "init=/bin/sh")
    assert code == 2
    assert "TESTCTL_LAB_BOOT: want words that are not the lab's own; got 'init=/bin/sh'" in said


def test_a_warning_fails_a_program(tmp_path: Path) -> None:
    """`lab exec` says it, and does not succeed; a failing program's own exit code stays."""
    env = {boot_parameters.SET: "testctl_fault.warn=1"}
    done = call(tmp_path, "lab", "exec", "--", "echo", "fine", code=1, **env)
    assert done.stdout == "fine\n"
    assert done.stderr.startswith("the lab's kernel reports a fault of its own: ")
    assert WORDS in done.stderr
    done = call(tmp_path, "lab", "exec", "--json", "--", "sh", "-c", "exit 7", code=7, **env)
    assert WORDS in json.loads(done.stdout)["kernel_faults"][0]
