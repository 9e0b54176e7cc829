# SPDX-License-Identifier: Apache-2.0
"""Every bug of plans/corpus: its plan passes in the lab, and fails when the bug is brought back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testctl.cli.main import app
from testctl.lab.source import tarball_of
from typer.testing import CliRunner

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(tarball_of("6.12") is None, reason="linux-source-6.12 is not installed"),
]


def test_each_is_detected_and_nothing_is_without_it() -> None:
    result = CliRunner().invoke(app, ["corpus", "--json"], catch_exceptions=False)
    entries = json.loads(result.stdout)["bugs"]
    assert {entry["name"]: entry["without"] for entry in entries if entry["without"]} == {}
    assert {entry["name"]: entry["verdict"] for entry in entries if not entry["detected"]} == {}
    assert result.exit_code == 0


PLAN = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch, delay, 10ms]
  - [switch:receiver, down, 1s-30s]
  - [bulk, user_timeout, 3s]
  - [bulk, duration, 10s]
expect:
  - {name: the sender gives up, fails_with: ETIMEDOUT}
"""


def test_other_plans_detect_a_bug_or_do_not(tmp_path: Path) -> None:
    """That the sender gives up late breaks the expectation of one plan alone."""
    (tmp_path / "weak.yaml").write_text(PLAN, encoding="utf-8")
    strong = f"{PLAN}  - {{name: in time, metric: failure_time_s, max: 4.5}}\n"
    (tmp_path / "strong.yaml").write_text(strong, encoding="utf-8")
    weak = _found(tmp_path / "weak.yaml")
    both = _found(tmp_path / "weak.yaml", tmp_path / "strong.yaml")
    assert weak["detected"] == {}
    assert "failure_time_s" in weak["different"][0]
    assert "in time" in both["detected"]["expectation"]


def _found(*plans: Path) -> dict[str, Any]:
    by = [word for plan in plans for word in ("--found-by", str(plan))]
    result = CliRunner().invoke(app, ["corpus", "user_timeout_backoff", "--json", *by], catch_exceptions=False)
    assert result.exit_code == 0
    entry: dict[str, Any] = json.loads(result.stdout)["bugs"][0]
    return entry
