# SPDX-License-Identifier: Apache-2.0
"""Annotations have the form of workflow commands, at the right places, and no text ends a command early."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.compare import of_run
from testctl.compare.github import MOST, annotation, append_summary, of_problems, of_verdicts
from testctl.plan.diagnostics import Place
from testctl_agent.spec.errors import PlanError

from controller.tests.compare.written import Given, write_run

POINT = Given()
COMMAND = re.compile(r"::(error|warning|notice) (?:(\w+)=([^:,\r\n]*))(?:,(\w+)=([^:,\r\n]*))*::([^\r\n]*)")


def parsed(command: str) -> tuple[str, dict[str, str], str]:
    """As GitHub's runner reads a command: the level, the properties, the text."""
    assert COMMAND.fullmatch(command), command
    head, _, text = command.removeprefix("::").partition("::")
    level, _, words = head.partition(" ")
    properties = dict(word.split("=", 1) for word in words.split(","))
    return level, {name: _decoded(value) for name, value in properties.items()}, _decoded(text)


def _decoded(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("%:,\r\n")), st.text("%:,\r\na")
)
def test_any_text_comes_back(text: str, file: str) -> None:
    level, properties, said = parsed(annotation("error", Place(file, 3, 2), file, text))
    assert (level, properties["file"], properties["line"], properties["col"]) == ("error", file, "3", "2")
    assert (properties["title"], said) == (file, text)


def test_one_annotation_for_an_expectation(tmp_path: Path) -> None:
    points = [
        replace(POINT, id=f"a{n}", tuples=(("switch", "delay", f"{n}ms"),), verdict="fail", reason=f"slow: got {n}")
        for n in range(7)
    ]
    points += [replace(POINT, id="s", tuples=(("switch", "delay", "9ms"),), verdict="skip", reason="no: way")]
    entry = {
        "name": "slow",
        "metric": "drops",
        "verdict": "fail",
        "points": [p.id for p in points[:7]],
        "at": "p.yaml:9:5",
    }
    judged = of_run(write_run(tmp_path / "a", points, expectations=[entry]), "plan.yaml")
    found = [parsed(command) for command in of_verdicts(judged, "plans/x.yaml")]
    assert [level for level, _, _ in found] == ["error", "warning"]
    assert found[0][1] == {"file": "p.yaml", "line": "9", "col": "5", "title": "p drops"}
    assert found[0][2].splitlines() == [*(f"delay={n}ms: fail: slow: got {n}" for n in range(5)), "… and 2 more points"]
    assert (found[1][1]["file"], found[1][1]["line"], found[1][2]) == ("plans/x.yaml", "1", "delay=9ms: skip: no: way")


def test_all_skipped_is_an_error_and_the_number_is_limited(tmp_path: Path) -> None:
    points = [replace(POINT, id=f"a{n}", repeat=n, verdict="skip", reason="no NIC") for n in range(3)]
    (only,) = of_verdicts(of_run(write_run(tmp_path / "a", points), "plan.yaml"), "plans/x.yaml")
    assert parsed(only)[0] == "error"
    entries = [
        {"name": f"e{n}", "metric": "drops", "verdict": "fail", "points": [], "at": f"p.yaml:{n + 1}:5"}
        for n in range(12)
    ]
    many = of_run(write_run(tmp_path / "b", [POINT], expectations=entries), "plan.yaml")
    assert len(list(of_verdicts(many, "plans/x.yaml"))) == MOST


def test_files_are_relative_to_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    files = ["p.yaml", str(tmp_path / "q.yaml"), "/elsewhere/r.yaml"]
    assert [parsed(annotation("error", Place(file, 1), "t", "x"))[1]["file"] for file in files] == [
        "sub/p.yaml", "q.yaml", "/elsewhere/r.yaml",
    ]  # fmt: skip


def test_errors_of_a_plan() -> None:
    text = "p.yaml:7:21: host sender, tcp_ecn: want one of 0, 1, 2; got 7\nother words: here\n… and 3 more"
    (one,) = of_problems(text)
    level, properties, said = parsed(one)
    assert (level, properties["file"], properties["line"], properties["col"]) == ("error", "p.yaml", "7", "21")
    assert said == "host sender, tcp_ecn: want one of 0, 1, 2; got 7"


def test_the_page_is_appended(tmp_path: Path) -> None:
    judged = of_run(write_run(tmp_path / "a", [POINT]), "plan.yaml")
    page = tmp_path / "summary.md"
    page.write_text("of an earlier command\n")
    append_summary(judged, {"GITHUB_STEP_SUMMARY": str(page)})
    assert page.read_text().startswith("of an earlier command\n# testctl run a\n\n**passed**: 1 pass\n")
    append_summary(judged, {})
    with pytest.raises(PlanError, match=r"GITHUB_STEP_SUMMARY=.*/nowhere/x: can't write it: No such file"):
        append_summary(judged, {"GITHUB_STEP_SUMMARY": str(tmp_path / "nowhere" / "x")})
