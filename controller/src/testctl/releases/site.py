# SPDX-License-Identifier: Apache-2.0
"""The pages: index.html in serve's look, releases.json, and the report of each run, as files that need no server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.charts.style import VERDICT_LOOKS
from testctl.releases.entries import LABELS, Entry
from testctl.releases.groups import Compared, Group
from testctl.report.looks import own_file, rendered, script
from testctl.report.page import POLICY
from testctl.results import Run, check_place
from testctl.results.atomic import naming_path, put_file, write_json, write_text
from testctl.results.layout import REPORT

FILE, PAGE = "releases.json", "index.html"
_KIND = "releases"
_ROOM = 100_000_000
_LOOKS = {"regression": "fail", "unknown": "invalid", "improvement": "pass", "expected": "skip"}
"""The verdict whose colour a label has."""
_BADGES = "".join(f".{label} {{ --mine: var(--{verdict}); }}\n" for label, verdict in _LOOKS.items())
_SORT = 'document.querySelectorAll("table.sorted").forEach(modules["dom.js"].sorted);'


def check_out(out: Path) -> None:
    """Refuse, before any run, a directory with something else in it, or that can't be written.  Raises PlanError."""
    try:
        there = json.loads((out / FILE).read_text(encoding="utf-8"))
        ours = isinstance(there, dict) and there.get("kind") == _KIND
    except (OSError, ValueError):
        ours = False
    if out.exists() and not ours and (not out.is_dir() or any(out.iterdir())):
        raise PlanError(f"--out {out}: want a new directory, or one of an earlier testctl releases; got something else")
    check_place(out, _ROOM)


def as_json(pairs: Sequence[Compared], groups: Sequence[Group], stale: Sequence[Entry]) -> dict[str, Any]:
    return {
        "kind": _KIND,
        "plans": [
            {"plan": pair.plan, "between": list(pair.between), "runs": list(pair.comparison.runs),
             "same": pair.comparison.same, "differ": len(pair.points),
             "only_old": [point.id for point in pair.comparison.only_a],
             "only_new": [point.id for point in pair.comparison.only_b]}
            for pair in pairs
        ],
        "groups": [group.to_json() for group in groups],
        "stale": [str(entry.place) for entry in stale],
    }  # fmt: skip


def write_site(pairs: Sequence[Compared], groups: Sequence[Group], stale: Sequence[Entry], out: Path) -> Path:
    """Returns index.html.  Raises TestbedError."""
    with naming_path(out, "the pages were not written; the runs are kept"):
        durable.make_directory(out)
        for run in {run.name: run for pair in pairs for run in pair.runs}.values():
            (out / _report(run)).unlink(missing_ok=True)
            put_file(run.path / REPORT, out / _report(run))
        write_text(out / PAGE, render(pairs, groups, stale))
        write_json(out / FILE, as_json(pairs, groups, stale))
    return out / PAGE


def render(pairs: Sequence[Compared], groups: Sequence[Group], stale: Sequence[Entry]) -> str:
    runs = {(pair.plan, pair.between): pair.runs for pair in pairs}
    return rendered(
        "releases/releases.html",
        found=pairs,
        groups=[(group, group.to_json()) for group in groups],
        labels=[(label, sum(group.label == label for group in groups)) for label in LABELS],
        looks=VERDICT_LOOKS,
        stale=stale,
        report=_report,
        page=lambda plan, between, side, point: _page(runs[plan, between][side], point),
        policy=POLICY,
        css=Markup(own_file("serve/static/app.css") + _BADGES),
        script=Markup(f"{script('dom.js')}\n{_SORT}"),
    )


def _report(run: Run) -> str:
    """The name of a run's page in the site."""
    return f"{run.name}.html"


def _page(run: Run, point: str) -> str:
    return f"{_report(run)}#/run/{run.name}/point/{point}"
