# SPDX-License-Identifier: Apache-2.0
"""The verdicts of one run for CI: a case for each point, and one for each expectation that no point answers for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testctl_agent.spec.types import shown

from testctl.compare.markdown import cell
from testctl.compare.terminal import tuple_words
from testctl.compare.verdicts import Change, JudgedCase, Status, Verdicts
from testctl.plan.diagnostics import Place
from testctl.report.factors import ABSENT, Factor, factors
from testctl.report.failures import failure_lines, failures_first
from testctl.report.metrics import columns, metric_texts
from testctl.results import Run, RunPoint

_STATUS: dict[str, Status] = {"pass": "pass", "fail": "fail", "skip": "skip", "invalid": "error", "broken": "error"}
_WRONG = ("fail", "invalid", "broken")
MOST_POINTS = 100
"""Points in the table of a page."""


@dataclass(frozen=True)
class _Expected:
    """An entry of summary.json's `expectations`; place: None where the plan was in no file.

    alone  whether no point fails by it
    """

    name: str
    metric: str
    verdict: str
    detail: str
    points: frozenset[str]
    place: Place | None
    alone: bool

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> _Expected:
        at = str(entry.get("at") or "")
        name, metric, verdict, detail = (str(entry.get(key) or "") for key in ("name", "metric", "verdict", "detail"))
        points = frozenset(map(str, entry.get("points") or ()))
        return cls(name, metric, verdict, detail, points, Place.of(at) if at else None, entry.get("alone") is True)


def of_run(run: Run, plan: str) -> Verdicts:
    """A case for each point of one run; plan: the URI of the plan's file."""
    expected = [_Expected.of(entry) for entry in run.summary.get("expectations") or ()]
    varying = factors(run.points)
    cases = [_of_point(point, expected, varying) for point in run.points]
    wrong = {point.id for point in run.points if point.verdict in _WRONG}
    cases += [_of_expectation(e) for e in expected if e.verdict in _WRONG and (e.alone or not e.points & wrong)]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in run.summary.get("counts", {}).items() if count)
    nothing = bool(run.points) and all(point.verdict == "skip" for point in run.points)
    return Verdicts(
        title=f"testctl run {run.name}",
        plan=plan,
        summary=counts,
        cases=tuple(cases),
        suite=str(run.summary.get("plan") or run.name),
        judgement=("failed", "nothing was measured" if nothing else "passed"),
        details=tuple(_details(run, expected, varying)),
    )


def metric_properties(point: RunPoint, expected: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The properties of a case: `metric_texts` by "flow.metric"."""
    return ((f"{flow}.{metric}", text) for flow, metric, text in metric_texts(point, expected))


def _of_point(point: RunPoint, expected: Sequence[_Expected], varying: Sequence[Factor]) -> JudgedCase:
    findings: list[Change] = []
    if point.verdict != "pass":
        there = [e for e in expected if point.id in e.points and not e.alone]
        names = [e.name for e in there]
        for e in (e for e in there if e.verdict == point.verdict):
            text = f"{point.verdict}: {_part(point.reason, e.name, names)}"
            findings.append(Change(e.metric or "verdict", "worse", text, place=e.place))
        findings = findings or [Change("verdict", "worse", f"{point.verdict}: {point.reason}")]
    tuples = ((f"{entity}.{parameter}", shown(value)) for entity, parameter, value in point.tuples)
    properties = (("point", point.id), *tuples, *metric_properties(point, (e.metric for e in expected)))
    name = _swept(point, varying) or tuple_words(point.tuples)
    return JudgedCase(point.id, name, _STATUS[point.verdict], tuple(findings), point.wall_s, properties)


def _part(reason: str, name: str, names: Sequence[str]) -> str:
    """What a point's reason has about one of its expectations; the reason itself if it does not name that one."""
    start = reason.find(f"{name}: ")
    if start < 0:
        return reason
    ends = (reason.find(f"; {other}: ", start) for other in names)
    return reason[start : min((end for end in ends if end >= 0), default=len(reason))]


def _of_expectation(e: _Expected) -> JudgedCase:
    """Of the quantifier `some`: each of its points passes."""
    change = Change(e.metric or "verdict", "worse", f"{e.name}: {e.detail}", place=e.place)
    return JudgedCase("", f"expect {e.name}", _STATUS[e.verdict], (change,))


def _swept(point: RunPoint, varying: Sequence[Factor]) -> str:
    """What distinguishes a point from the others of its run, the same in every run of the plan."""
    levels = [(factor.label, factor.of.get(point.id, ABSENT)) for factor in varying]
    return " ".join(f"{label}={value}" for label, value in levels if value != ABSENT)


def _details(run: Run, expected: Sequence[_Expected], varying: Sequence[Factor]) -> Iterator[tuple[str, ...]]:
    """What a page has beside the findings: the expectations, what failures share, the points."""
    if expected:
        rows = [f"| {e.verdict} | {cell(e.name)} | {cell(e.detail)} | {_place(e)} |" for e in expected]
        yield ("| | expectation | found | where |", "| --- | --- | --- | --- |", *rows)
    if shared := [f"- {cell(sentence)}" for _, sentence in failure_lines(run.points)]:
        yield tuple(shared)
    metrics = columns(run.points, run.summary)
    heads = [*(factor.label for factor in varying), *(column.heading for column in metrics)]
    rows = []
    for point in failures_first(run.points)[:MOST_POINTS]:
        values = [factor.of.get(point.id, ABSENT) for factor in varying] + [metric.cell(point)[1] for metric in metrics]
        rows.append(" | ".join([f"| {point.verdict} | `{point.id}`", *map(cell, values)]) + " |")
    if rows:
        head = " | ".join(["| | point", *map(cell, heads)]) + " |"
        yield (head, "|" + " --- |" * (2 + len(heads)), *rows)
    if len(run.points) > MOST_POINTS:
        yield (f"… and {len(run.points) - MOST_POINTS} more points",)


def _place(e: _Expected) -> str:
    return f"`{e.place.file}:{e.place.line}`" if e.place and e.place.line else ""
