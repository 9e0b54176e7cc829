# SPDX-License-Identifier: Apache-2.0
"""One run for the page: its question and its result first, then its points, and how it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from testctl_agent.spec.errors import PlanError

from testctl.core.path_facts import HEADS, path_rows, paths_of
from testctl.core.point import POINT_WIDE, PointSpec
from testctl.plan import FigureSpec, figures_of
from testctl.plan.sweep_figures import SWEEP_KINDS
from testctl.report.claims import claim_rows, claims_of
from testctl.report.expectations import Judged, judged
from testctl.report.factors import Factor, describe, factors
from testctl.report.failures import failure_tables, telling_labels
from testctl.report.finding import finding
from testctl.report.metrics import columns
from testctl.report.night import night
from testctl.report.plan_charts import Read, chart_of
from testctl.report.provenance import lines
from testctl.report.sweep_choice import default_spec, swept_keys
from testctl.results import RunPoint, layout
from testctl.results.provenance import Provenance
from testctl.results.reader import read_json

T = TypeVar("T")
_SHOWN = (*layout.VERDICTS, layout.UNJUDGED)
_MOST_REASONS = 8


@dataclass(frozen=True)
class Found:
    """A run as it lies on disk; `damage` says in words what could not be read."""

    path: Path
    summary: Mapping[str, Any]
    points: Sequence[RunPoint]
    damage: Sequence[str] = ()

    @property
    def state(self) -> str:
        """complete, in progress, or damaged."""
        if self.path.name.endswith(layout.IN_PROGRESS):
            return "in progress"
        return "damaged" if self.damage or not self.summary else "complete"


def run_page(run: Found, plan_text: str, files: Sequence[tuple[str, int]] = ()) -> dict[str, Any]:
    """What the page of a run asks for.  files: [(path, bytes)] of the run's own, where they can be had."""
    points, summary, varying = run.points, run.summary, factors(run.points)
    names = sorted({metric for point in points for values in point.metrics.values() for metric in values})
    shown, versions = columns(points, summary), summary.get("versions")
    expected = judged(summary, points, plan_text)
    return {
        "name": run.path.name,
        "state": run.state,
        "damage": list(run.damage[:20]),
        "plan": str(summary.get("plan") or plan_of(run.path)),
        "about": str(summary.get("about") or ""),
        "started": str(summary.get("started") or time_of(run.path)),
        "wall_s": summary.get("wall_s"),
        "digest": str(summary.get("digest") or ""),
        "reproduce": str(summary.get("reproduce") or ""),
        "overrides": overrides_of(summary),
        "versions": flat(versions) if isinstance(versions, Mapping) else [],
        "statement": _readable(lambda: lines(summary)) or [],
        "plan_text": plan_text,
        "found": finding(points, expected),
        "night": _readable(lambda: night(run.path, summary, points, varying)),
        "reasons": _reasons(points),
        "claims": _readable(lambda: claim_rows(claims_of(summary))) or [],
        "expectations": [_expectation(expectation, points, varying) for expectation in expected],
        "counts": {verdict: sum(p.verdict == verdict for p in points) for verdict in _SHOWN},
        "failures": failure_tables(points, expected),
        "axes": telling_labels(points),
        "paths": {"heads": HEADS, "rows": _readable(lambda: _paths(run.path, points)) or []},
        "files": list(files),
        "factors": [{"label": factor.label, "values": list(factor.values)} for factor in varying],
        "flows": list(dict.fromkeys(flow for point in points for flow in point.metrics if flow != POINT_WIDE)),
        "metrics": names,
        "columns": [[column.metric, column.heading, column.meaning] for column in shown],
        "points": [
            {
                "id": point.id,
                "verdict": point.verdict,
                "reason": point.reason,
                "name": describe(point, varying),
                "at": [factor.of[point.id] for factor in varying],
                "cells": [list(column.cell(point)) for column in shown],
            }
            for point in points
        ],
    }


def run_figures(run: Found, plan_text: str, read: Read | None = None) -> dict[str, Any]:
    """The figures that the run's plan declares, and a default one where no figure is of metrics over swept parameters.

    read  the records of a point; None: figures that need records are requested one by one, as they take time
    """
    points, summary, specs = run.points, run.summary, specs_in(plan_text)
    shown: list[dict[str, Any]] = [
        chart_of(spec, points, summary, read or RunPoint.records).to_json()
        if read is not None or spec.kind in SWEEP_KINDS
        else {"title": spec.title, "number": number}
        for number, spec in enumerate(specs)
    ]
    if not any(spec.kind in SWEEP_KINDS for spec in specs) and (spec := default_spec(points, summary)):
        shown.append(chart_of(spec, points, summary).to_json())
    return {"figures": shown, "swept": swept_keys(points)}


def specs_in(plan_text: str) -> Sequence[FigureSpec]:
    """The figures that a plan declares; empty for a plan of another version: its run is shown all the same."""
    try:
        return figures_of(plan_text, layout.PLAN)
    except PlanError:
        return ()


def _expectation(expectation: Judged, points: Sequence[RunPoint], varying: Sequence[Factor]) -> dict[str, Any]:
    return {
        "name": expectation.name,
        "verdict": expectation.verdict,
        "metric": expectation.metric,
        "bound": expectation.bound,
        "found": expectation.observed,
        "detail": expectation.detail,
        "points": [
            [p.id, describe(p, varying)] for p in points if expectation.verdict != "pass" and p.id in expectation.points
        ],
    }


def _paths(path: Path, points: Sequence[RunPoint]) -> list[list[str]]:
    """Of the expanded plan, one file, rather than of a file of every point."""
    file, there = path / layout.EXPANDED, {point.id for point in points}
    if file.is_symlink() or not file.is_file():
        return []
    planned = read_json(file)["points"]
    return path_rows(paths_of(PointSpec.from_json(point) for point in planned if point["id"] in there))


def _reasons(points: Sequence[RunPoint]) -> list[dict[str, Any]]:
    """Why points are broken, invalid or were skipped: each reason once, with its first point."""
    bad = [point for point in points if point.verdict in ("broken", "invalid", "skip") and point.reason]
    counted = Counter((point.verdict, point.reason) for point in bad)
    first = {(point.verdict, point.reason): point.id for point in reversed(bad)}
    return [
        {"verdict": verdict, "reason": reason, "count": count, "point": first[verdict, reason]}
        for (verdict, reason), count in counted.most_common(_MOST_REASONS)
    ]


def _readable(read: Callable[[], T]) -> T | None:
    """What is read of a summary; None where it is not as testctl writes it: the rest is shown all the same."""
    try:
        return read()
    except (ArithmeticError, AttributeError, LookupError, PlanError, TypeError, ValueError):
        return None


def flat(versions: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in versions.items():
        rows += flat(value, f"{prefix}{name} ") if isinstance(value, Mapping) else [(f"{prefix}{name}", str(value))]
    return rows


def overrides_of(summary: Mapping[str, Any]) -> list[str]:
    """What the run changed of its plan: "--set …" and "--without …", as it would be typed."""
    made = _readable(lambda: Provenance.from_json(summary))
    if made is None:
        return []
    without = [f"--without {entity}.{parameter}" for entity, parameter, _ in made.left_out]
    return [*(f"--set {override}" for override in made.overrides), *without]


def plan_of(path: Path) -> str:
    """The plan's name by the run's."""
    return path.name.removesuffix(layout.IN_PROGRESS).partition("-")[2] or path.name


def time_of(path: Path) -> str:
    """The start by the run's name, as summary.json would say it; "" when the name has none."""
    day, t, clock = path.name.partition("-")[0].partition(".")[0].removesuffix("Z").partition("T")
    if not (t and len(day) == 8 and len(clock) == 6 and (day + clock).isdigit()):
        return ""
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}+00:00"
