# SPDX-License-Identifier: Apache-2.0
"""Verdicts as a Markdown page, such as a job's summary or a comment on a change."""

from __future__ import annotations

from collections import Counter

from testctl.compare.deltas import ORDER
from testctl.compare.verdicts import JudgedCase, Verdicts

MAX = 200
"""Findings that are listed: such pages are limited in size."""
LONGEST = 500
"""Characters of a table's cell."""


def markdown(judged: Verdicts) -> str:
    """The file's text: a verdict, counts, details, and the findings, worst first."""
    bad = judged.count("fail", "error")
    lines = [
        f"# {cell(judged.title)}",
        "",
        f"**{judged.judgement[0 if bad else 1]}**: {cell(judged.summary)}",
        "",
    ]
    for paragraph in judged.details:
        lines += [*paragraph, ""]
    rows = [(case, finding) for case in judged.cases for finding in case.findings]
    rows.sort(key=lambda row: (row[0].status in ("pass", "skip"), ORDER[row[1].direction]))
    if len(rows) > MAX:
        lines += [f"The worst {MAX} of {len(rows)} findings:", ""]
    if rows:
        lines += ["| | point | tuples | what |", "| --- | --- | --- | --- |"]
        lines += [f"| {f.direction} | {_point(case)} | {cell(case.name)} | {cell(f.text)} |" for case, f in rows[:MAX]]
    if len(rows) > MAX:
        rest = Counter(finding.direction for _, finding in rows[MAX:])
        counts = ", ".join(f"{rest[direction]} {direction}" for direction in ORDER if rest[direction])
        lines += ["", f"… and {len(rows) - MAX} more that are not in this table: {counts}"]
    return "\n".join(lines).rstrip("\n") + "\n"


def _point(case: JudgedCase) -> str:
    return f"`{case.id}`" if case.id else ""


def cell(text: str) -> str:
    """Text escaped for a table's cell, shortened where it is very long."""
    flat = " ".join(text.split())
    flat = flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"
    for char in "\\|`*_~&<>[]":
        flat = flat.replace(char, f"\\{char}")
    return flat
