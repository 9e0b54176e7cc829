# SPDX-License-Identifier: Apache-2.0
"""What GitHub Actions shows of a job: annotations of files, by commands on standard output, and a page in Markdown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.compare.markdown import markdown
from testctl.compare.verdicts import Verdicts
from testctl.plan.diagnostics import Place

MOST = 10
"""Annotations of a step that GitHub shows."""
SUMMARY = "GITHUB_STEP_SUMMARY"


def of_verdicts(judged: Verdicts, plan: str) -> Iterator[str]:
    """One for each place in the plan whose points are not as expected, with all that is wrong there; errors first.

    plan: the plan's file, for what has no place of its own
    """
    annotations: dict[tuple[str, str, Place], list[str]] = {}
    nothing = judged.count("skip") == len(judged.cases)  # which is no success
    for case in judged.cases:
        for finding in case.findings:
            place = finding.place or Place(plan, 1)
            level = "warning" if case.status == "skip" and not nothing else "error"
            texts = annotations.setdefault(
                (level, " ".join(word for word in (judged.suite, finding.rule) if word), place), []
            )
            texts.append(f"{case.name}: {finding.text}" if case.id else finding.text)
    for (level, title, place), texts in sorted(annotations.items(), key=lambda item: item[0][0])[:MOST]:
        more = [f"… and {len(texts) - 5} more points"] if len(texts) > 5 else []
        yield annotation(level, place, title, "\n".join([*texts[:5], *more]))


def of_problems(text: str) -> Iterator[str]:
    """Annotations of the lines "file:line:column: what" of an error in a plan."""
    for line in text.splitlines():
        place, separator, what = line.partition(": ")
        parsed = Place.of(place)
        if separator and parsed.line:
            yield annotation("error", parsed, "plan", what)


def annotation(level: str, place: Place, title: str, text: str) -> str:
    """A workflow command.  level: error, warning or notice."""
    at = {"file": _in_workspace(place.file), "line": place.line or 1, "col": place.column or 1, "title": title}
    properties = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in at.items())
    return f"::{level} {properties}::{_escaped(text)}"


def append_summary(judged: Verdicts, environment: Mapping[str, str] = os.environ) -> None:
    """Append the page to the job's summary.  Raises PlanError."""
    if not (path := environment.get(SUMMARY)):
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(markdown(judged) + "\n")
    except OSError as error:
        raise PlanError(f"{SUMMARY}={path}: can't write it: {error.strerror}") from error


def _in_workspace(file: str) -> str:
    """Relative to the repository's checkout, as annotations want it; other files as they are."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).absolute()
    return path.relative_to(workspace).as_posix() if workspace and path.is_relative_to(workspace) else file


def _escaped(text: str, more: str = "") -> str:
    """Characters that end a command or one of its properties, percent-encoded."""
    return re.sub(f"[%\r\n{more}]", lambda match: f"%{ord(match[0]):02X}", text)
