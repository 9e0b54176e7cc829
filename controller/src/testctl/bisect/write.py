# SPDX-License-Identifier: Apache-2.0
"""The result of a bisection as text, as a page of Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testctl_agent.spec.untrusted import words
from testctl_agent.system import durable

from testctl.bisect.criterion import shown
from testctl.bisect.repository import Commit
from testctl.bisect.search import Change, Found, Step
from testctl.compare.deltas import change_words, value_words

PAGE, FILE = "bisect.md", "bisect.json"
MOST = 12
"""Metrics that the terminal shows of a point: those that changed most."""


def write(found: Found, directory: Path) -> None:
    durable.write(directory / FILE, (json.dumps(to_json(found), indent=1) + "\n").encode())
    durable.write(directory / PAGE, "".join(f"{line}\n" for line in page(found)).encode())


def to_json(found: Found) -> dict[str, Any]:
    return {
        "good": asdict(found.good),
        "bad": asdict(found.bad),
        "by": found.criterion.words,
        "culprit": asdict(found.culprit) if found.culprit else None,
        "before": asdict(found.before) if found.before else None,
        "possible": [asdict(one) for one in found.possible],
        "values": list(found.values),
        "commits": found.total,
        "builds": found.builds,
        "runs": found.runs,
        "steps": [asdict(one) for one in found.steps],
        "changes": [
            {"point": one.point, "metrics": [move.to_json() for move in one.metrics],
             "first": one.first.to_json() if one.first else None}
            for one in found.changes
        ],
    }  # fmt: skip


def line_of(step: Step) -> str:
    same = f" (the kernel of {step.same_as[:12]})" if step.same_as else ""
    return words(f"{step.verdict:<4}  {step.commit.words}: {step.words}{same}")


def lines(found: Found) -> Iterator[str]:
    """What the terminal shows at the end."""
    yield from map(words, _headline(found))
    for change in found.changes:
        yield from map(words, _change(change, MOST))
    yield f"{found.total} commits between the two, {found.builds} kernels built, {found.runs} runs of a point"


def _headline(found: Found) -> Iterator[str]:
    if found.culprit is None or found.before is None:
        yield f"not decided: {len(found.possible)} commits can be the first bad one, because they can't all be judged:"
        yield from (f"  {one.words}" for one in found.possible)
        return
    yield f"first bad commit: {found.culprit.id}"
    yield f"  {found.culprit.title}"
    yield f"  {found.culprit.author}, {found.culprit.date}"
    yield f"by the {found.criterion.words}: {shown(found.values[0])} before it, {shown(found.values[1])} with it"


def _change(change: Change, most: int | None) -> Iterator[str]:
    yield f"point {change.point}: {len(change.metrics)} metrics changed"
    ordered = sorted(change.metrics, key=lambda move: -abs(move.relative) if move.relative is not None else 0.0)
    for move in ordered[:most]:
        values = f"{value_words(move.a)} → {value_words(move.b)}"
        better = "" if move.direction == "other" else f", {move.direction}"
        yield f"  {move.flow} {move.metric}: {values}  {change_words(move.relative)}{better}".rstrip()
    if most is not None and len(ordered) > most:
        yield f"  … and {len(ordered) - most} more, in {PAGE}"
    yield f"  first difference: {change.first.words() if change.first else 'none, the records are the same'}"


def page(found: Found) -> Iterator[str]:
    """The report."""
    yield f"# Bisection by the {words(found.criterion.words)}"
    yield ""
    for name, end in (("good", found.good), ("bad", found.bad)):
        yield f"- {name}: `{end.id}` {_text(end)}"
    yield f"- {found.total} commits, {found.builds} kernels built, {found.runs} runs of a point"
    yield ""
    yield "```"
    yield from map(words, _headline(found))
    yield "```"
    yield ""
    for change in found.changes:
        yield "```"
        yield from map(words, _change(change, None))
        yield "```"
        yield ""
    yield "| commit | verdict | why |"
    yield "| --- | --- | --- |"
    for step in found.steps:
        why = step.words + (f" (the kernel of {step.same_as[:12]})" if step.same_as else "")
        yield f"| `{step.commit.id[:12]}` {_text(step.commit)} | {step.verdict} | {_cell(why)} |"


def _text(commit: Commit) -> str:
    return _cell(commit.title)


def _cell(text: str) -> str:
    return words(text).replace("|", "\\|").replace("\n", " ")
