# SPDX-License-Identifier: Apache-2.0
"""Expectations over the trace in runs of the lab: the examples of docs/plans.md hold; a fail says when; reuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from testctl.core.temporal import EVENTS, SIGNALS
from testctl.results import Run, load_run

PAGE = (Path(__file__).parents[1] / "docs" / "plans.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## Over time\n") : PAGE.index("\n## Figures\n")]


def example(release: str, *more: Mapping[str, Any]) -> str:
    """The section's plan, with these expectations or all of the section's."""
    parts = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)]
    plan = parts[0] | {"expect": list(more) or [item for part in parts for item in part["expect"]]}
    plan["tuples"].append(["hosts", "kernel", release])
    return yaml.safe_dump(plan)


def run(where: Path, text: str) -> tuple[Run, str, int]:
    (where / "plan.yaml").write_text(text, encoding="utf-8")
    argv = [
        sys.executable,
        "-m",
        "testctl.cli.main",
        "run",
        "plan.yaml",
        "--results",
        "runs",
        "--jobs",
        "1",
        "--resume",
    ]
    environment = os.environ | {"TMPDIR": str(where)}
    done = subprocess.run(argv, cwd=where, env=environment, capture_output=True, text=True, timeout=900, check=False)
    return load_run(where / "runs" / "latest"), done.stdout + done.stderr, done.returncode


def test_the_page_has_every_signal_and_event() -> None:
    rows = " ".join(line for line in SECTION.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+|…_\w+)`", rows))
    assert {name.replace("throughput_", "…_") if name != "throughput_1ms" else name for name in SIGNALS} <= named
    assert set(EVENTS) <= named


@pytest.mark.lab
def test_the_examples_hold_and_others_do_not(release: str, tmp_path: Path) -> None:
    """Then the kept point is judged by other expectations: one fails, with the time, and another can't be judged."""
    first, shown, code = run(tmp_path, example(release))
    assert {item["verdict"] for item in first.summary["expectations"]} == {"pass"}, shown
    assert (code, len(first.summary["expectations"])) == (0, 11)
    others = (
        {"name": "never small", "always": "cwnd", "min": 2, "after": "first recovery"},
        {"name": "marked", "always": "cwnd", "min": 2, "after": "mark"},
        {"name": "large", "always": "cwnd", "min": 1},
    )
    second, shown, code = run(tmp_path, example(release, *others))
    assert code == 3
    (point,) = second.points
    assert point.verdict_file.reused_from == first.name
    fails, unclear, holds = second.summary["expectations"]
    assert (fails["verdict"], unclear["verdict"], holds["verdict"]) == ("fail", "invalid", "pass")
    assert re.search(
        r"cwnd of bulk: want always at least 2 after first recovery at 0\.\d{6} s \(ack, snd_una 70952, .*\); "
        r"got 1 \(at 1\.\d{6} s: (timeout|retransmit), snd_una \d+, snd_nxt \d+, event \d+ of the trace\)",
        fails["detail"],
    )
    assert "cwnd of bulk: the event mark never came" in unclear["detail"]
    assert "fail  never small" in shown
    assert "invalid  marked" in shown
    answers = json.loads((point.path / "answers.json").read_text(encoding="utf-8"))
    assert answers["always cwnd min 2.0 after first recovery"]["bulk"]["time_ns"] > 10**9
