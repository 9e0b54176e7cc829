# SPDX-License-Identifier: Apache-2.0
"""Verdicts as a Markdown page, such as a job's summary or a comment on a change."""

from __future__ import annotations

from testctl.compare.verdicts import JudgedCase, Verdicts

MAX = 200
"""Findings that are listed: such pages are limited in size."""
_ORDER = {"worse": 0, "better": 1, "other": 2}


def markdown(judged: Verdicts) -> str:
    """The file's text: a verdict, counts, and the findings, worst first."""
    bad = judged.count("fail", "error")
    lines = [
        f"# {_cell(judged.title)}",
        "",
        f"**{'worse' if bad else 'nothing is worse'}**: {_cell(judged.summary)}",
        "",
    ]
    found = [(case, finding) for case in judged.cases for finding in case.findings]
    found.sort(key=lambda one: _ORDER[one[1].direction])
    if found:
        lines += ["| | point | tuples | what |", "| --- | --- | --- | --- |"]
        lines += [f"| {f.direction} | `{case.id}` | {_tuples(case)} | {_cell(f.text)} |" for case, f in found[:MAX]]
    if len(found) > MAX:
        lines += ["", f"… and {len(found) - MAX} more"]
    return "\n".join(lines).rstrip("\n") + "\n"


def _tuples(case: JudgedCase) -> str:
    return _cell(case.name)


def _cell(text: str) -> str:
    """Text escaped for a table's cell."""
    flat = " ".join(text.split())
    for char in "\\|`*_<>[]":
        flat = flat.replace(char, f"\\{char}")
    return flat
