# SPDX-License-Identifier: Apache-2.0
"""Verdicts for CI: one data model of a comparison or a run, from which all file formats are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from testctl.compare.deltas import Direction, Move, change_words, ranked, value_words, verdict_direction
from testctl.compare.exact import Comparison, Difference
from testctl.compare.statistical import SAID, JudgedCell, Judgement, Statistical
from testctl.compare.terminal import same_points, tuple_words
from testctl.plan.diagnostics import Place
from testctl.results import RunPoint

Status = Literal["pass", "fail", "error", "skip"]


@dataclass(frozen=True)
class Change:
    """One line of a report.

    rule   a metric's name, or "verdict", "digest", "missing", "new"
    place  what in a plan states it
    """

    rule: str
    direction: Direction
    text: str
    flow: str = ""
    place: Place | None = None


@dataclass(frozen=True)
class JudgedCase:
    """A point: its verdict and its findings; `properties` are its tuples and its most important metrics."""

    id: str
    name: str
    status: Status
    findings: tuple[Change, ...] = ()
    wall_s: float = 0.0
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Verdicts:
    """What was compared or run.

    plan      URI of the plan's file, the location of findings that have none of their own
    summary   one line
    suite     a name that is the same in every run; "": the title
    judgement what a page says where something is wrong, and where nothing is
    details   paragraphs and tables of a page, each [line], in Markdown
    """

    title: str
    plan: str
    summary: str
    cases: tuple[JudgedCase, ...]
    same: int = 0
    suite: str = ""
    judgement: tuple[str, str] = ("worse", "no point is worse")
    details: tuple[tuple[str, ...], ...] = ()

    def count(self, *status: Status) -> int:
        return sum(case.status in status for case in self.cases)


def verdicts_of(comparison: Comparison | Statistical, plan: str) -> Verdicts:
    """The verdicts of a comparison; plan is the URI of the plan's file."""
    return of_comparison(comparison, plan) if isinstance(comparison, Comparison) else of_statistical(comparison, plan)


def of_comparison(comparison: Comparison, plan: str) -> Verdicts:
    """A case for each point that differs; equal points are counted."""
    cases = [_of_difference(difference, comparison.expected) for difference in comparison.differences]
    gone = Change("missing", "worse", f"the point is not in {comparison.runs[1]}")
    new = Change("new", "other", f"the point is not in {comparison.runs[0]}")
    cases += [_case(point, "fail", gone) for point in comparison.only_a] + [
        _case(point, "skip", new) for point in comparison.only_b
    ]
    same = same_points(comparison.same)
    summary = f"{same}, {len(comparison.differences)} differ" if comparison.differs else f"no difference: {same}"
    return Verdicts(_title(comparison.runs), plan, summary, tuple(cases), comparison.same)


def of_statistical(comparison: Statistical, plan: str) -> Verdicts:
    """A case for each cell; a cell without a metric that could be judged is skipped."""
    summary = ", ".join(f"{comparison.count(conclusion)} {conclusion}" for conclusion in SAID)
    return Verdicts(_title(comparison.runs), plan, summary, tuple(map(_of_cell, comparison.cells)))


def _title(runs: tuple[str, str]) -> str:
    return f"testctl compare {runs[0]} {runs[1]}"


def _case(point: RunPoint, status: Status, *findings: Change) -> JudgedCase:
    return JudgedCase(point.id, tuple_words(point.tuples), status, findings, point.wall_s)


def _of_difference(difference: Difference, expected: Sequence[str]) -> JudgedCase:
    findings = _verdict(difference.verdicts, difference.reasons)
    findings += [
        Change("asked", "other", f"asked {entity}.{parameter}: {a or 'nothing'} → {b or 'nothing'}")
        for entity, parameter, a, b in difference.asked
    ]
    findings += [Change("digest", "other", f"first difference: {difference.first.words()}")] if difference.first else []
    findings += [Change(m.metric, m.direction, _moved(m), m.flow) for m in ranked(difference.moves, expected)]
    status: Status = "fail" if difference.direction == "worse" else "pass"
    return JudgedCase(difference.point, tuple_words(difference.tuples), status, tuple(findings))


def _verdict(verdicts: tuple[str, str], reasons: tuple[str, str]) -> list[Change]:
    if verdicts[0] == verdicts[1]:
        return []
    reason = reasons[1] or reasons[0]
    text = f"verdict {' → '.join(verdicts)}{': ' + reason if reason else ''}"
    return [Change("verdict", verdict_direction(*verdicts), text)]


def _moved(move: Move) -> str:
    change = change_words(move.relative)
    a, b = (value_words(move.metric, value) for value in (move.a, move.b))
    return f"{move.flow} {move.metric}: {a} → {b}{f' ({change})' if change else ''}"


def _of_cell(cell: JudgedCell) -> JudgedCase:
    findings = [Change(j.metric, j.direction, _judged(j), j.flow) for j in cell.changed]
    if cell.verdict_direction != "other" or not (cell.cell.a and cell.cell.b):
        sides = [", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "none" for counts in cell.verdicts]
        findings.insert(0, Change("verdict", cell.verdict_direction, f"verdicts {' → '.join(sides)}"))
    judged = [judgement for judgement in cell.judgements if judgement.said != "too few samples"]
    status: Status = "fail" if cell.direction == "worse" else "pass" if judged or findings else "skip"
    if status == "skip":
        findings.append(Change("samples", "other", "too few samples"))
    return JudgedCase(cell.cell.name, tuple_words(cell.cell.tuples), status, tuple(findings))


def _judged(judgement: Judgement) -> str:
    a, b = (value_words(judgement.metric, middle) for middle in judgement.tested.medians)
    interval = judgement.relative_interval
    ends = f", 95 %: {' to '.join(change_words(end) for end in interval)}" if interval else ""
    change = f"{change_words(judgement.relative)}{ends}; ".lstrip("; ")  # from 0 there is no relative change
    counts: Sequence[int] = judgement.tested.counts
    return (
        f"{judgement.flow} {judgement.metric}: {a} → {b} ({change}"
        f"p {judgement.p_adjusted:.2g}, Cliff's delta {judgement.tested.effect:+.2f}, n {counts[0]}+{counts[1]})"
    )
