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

from testctl.bisect.repository import Commit
from testctl.bisect.search import Change, Found, Step
from testctl.compare.deltas import change_words, value_words

PAGE, FILE = "bisect.md", "bisect.json"
MOST = 12
"""Metrics that the terminal shows of a point: those that changed most."""


def write(result: Found, directory: Path) -> None:
    durable.write(directory / FILE, (json.dumps(to_json(result), indent=1) + "\n").encode())
    durable.write(directory / PAGE, "".join(f"{line}\n" for line in page(result)).encode())


def to_json(result: Found) -> dict[str, Any]:
    return {
        "good": asdict(result.good),
        "bad": asdict(result.bad),
        "by": result.criterion.words,
        "culprit": asdict(result.culprit) if result.culprit else None,
        "before": asdict(result.before) if result.before else None,
        "possible": [asdict(commit) for commit in result.possible],
        "values": list(result.values),
        "commits": result.total,
        "builds": result.builds,
        "runs": result.runs,
        "steps": [asdict(step) for step in result.steps],
        "changes": [
            {"point": change.point, "metrics": [move.to_json() for move in change.metrics],
             "first": change.first.to_json() if change.first else None}
            for change in result.changes
        ],
    }  # fmt: skip


def line_of(step: Step) -> str:
    same = f" (the kernel of {step.same_as[:12]})" if step.same_as else ""
    return words(f"{step.verdict:<4}  {step.commit.words}: {step.words}{same}")


def lines(result: Found) -> Iterator[str]:
    """What the terminal shows at the end."""
    yield from map(words, _headline(result))
    for change in result.changes:
        yield from map(words, _change(change, MOST))
    yield f"{result.total} commits between the two, {result.builds} kernels built, {result.runs} runs of a point"


def _headline(result: Found) -> Iterator[str]:
    if result.culprit is None or result.before is None:
        yield f"not decided: {len(result.possible)} commits can be the first bad one, because they can't all be judged:"
        yield from (f"  {commit.words}" for commit in result.possible)
        return
    yield f"first bad commit: {result.culprit.id}"
    yield f"  {result.culprit.title}"
    yield f"  {result.culprit.author}, {result.culprit.date}"
    before, after = map(result.criterion.shown, result.values)
    yield f"by the {result.criterion.words}: {before} before it, {after} with it"


def _change(change: Change, most: int | None) -> Iterator[str]:
    yield f"point {change.point}: {len(change.metrics)} metrics changed"
    ordered = sorted(change.metrics, key=lambda move: -abs(move.relative) if move.relative is not None else 0.0)
    for move in ordered[:most]:
        values = " → ".join(value_words(move.metric, value) for value in (move.a, move.b))
        better = "" if move.direction == "other" else f", {move.direction}"
        yield f"  {move.flow} {move.metric}: {values}  {change_words(move.relative)}{better}".rstrip()
    if most is not None and len(ordered) > most:
        yield f"  … and {len(ordered) - most} more, in {PAGE}"
    yield f"  first difference: {change.first.words() if change.first else 'none, the records are the same'}"


def page(result: Found) -> Iterator[str]:
    yield f"# Bisection by the {words(result.criterion.words)}"
    yield ""
    for name, end in (("good", result.good), ("bad", result.bad)):
        yield f"- {name}: `{end.id}` {_text(end)}"
    yield f"- {result.total} commits, {result.builds} kernels built, {result.runs} runs of a point"
    yield ""
    yield "```"
    yield from map(words, _headline(result))
    yield "```"
    yield ""
    for change in result.changes:
        yield "```"
        yield from map(words, _change(change, None))
        yield "```"
        yield ""
    yield "| commit | verdict | why |"
    yield "| --- | --- | --- |"
    for step in result.steps:
        why = step.words + (f" (the kernel of {step.same_as[:12]})" if step.same_as else "")
        yield f"| `{step.commit.id[:12]}` {_text(step.commit)} | {step.verdict} | {_cell(why)} |"


def _text(commit: Commit) -> str:
    return _cell(commit.title)


def _cell(text: str) -> str:
    return words(text).replace("|", "\\|").replace("\n", " ")
