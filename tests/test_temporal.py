# SPDX-License-Identifier: Apache-2.0
"""Expectations over the trace in runs of the lab: the examples of docs/plans.md hold; a fail says when; reuse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from testctl.core.temporal import EVENTS, SIGNALS
from testctl.results import Run, load_run

from tests.cli_commands import call

PAGE = (Path(__file__).parents[1] / "docs" / "plans.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("\n## Over time\n") : PAGE.index("\n## Figures\n")]


def examples(release: str) -> list[dict[str, Any]]:
    """The section's plans; expectations alone belong to the plan before them."""
    plans: list[dict[str, Any]] = []
    for text in re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL):
        part = yaml.safe_load(text)
        if "topology" not in part:
            plans[-1]["expect"] += part["expect"]
            continue
        part["tuples"].append(["hosts", "kernel", release])
        plans.append(part)
    return plans


def example(release: str, *more: Mapping[str, Any]) -> str:
    """The section's first plan, with these expectations or all of its own."""
    plan = examples(release)[0]
    return yaml.safe_dump(plan | {"expect": list(more) or plan["expect"]})


def run(where: Path, text: str) -> tuple[Run, str, int]:
    (where / "plan.yaml").write_text(text, encoding="utf-8")
    words = ("run", "plan.yaml", "--results", "runs", "--jobs", "1", "--resume")
    done = call(where, *words, code=None, TMPDIR=where)
    return load_run(where / "runs" / "latest"), done.stdout + done.stderr, done.returncode


def test_the_page_has_every_signal_and_event() -> None:
    rows = " ".join(line for line in SECTION.splitlines() if line.startswith("|"))
    named = set(re.findall(r"`(\w+|…_\w+)`", rows))
    assert {name.replace("throughput_", "…_") if name != "throughput_1ms" else name for name in SIGNALS} <= named
    assert set(EVENTS) <= named


def test_an_example_has_each_word_of_the_congestion_control() -> None:
    """And of what limits the sender."""
    used: set[str] = set()
    for plan in examples("6.12"):
        for item in plan["expect"]:
            used |= {item.get("always"), item.get("eventually"), *item.get("while", {})}
    assert {"limited_by", "phase", "pacing_gain", "cwnd_gain", "dctcp_alpha", "pacing_rate", "delivery_rate"} <= used


@pytest.mark.lab
@pytest.mark.parametrize("number", [1, 2])
def test_the_other_examples_hold(release: str, tmp_path: Path, number: int) -> None:
    plan = examples(release)[number]
    found, shown, code = run(tmp_path, yaml.safe_dump(plan))
    assert [item["verdict"] for item in found.summary["expectations"]] == ["pass"] * len(plan["expect"]), shown
    assert code == 0


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
