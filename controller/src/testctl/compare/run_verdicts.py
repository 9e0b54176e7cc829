# SPDX-License-Identifier: Apache-2.0
"""The verdicts of one run for CI: a case for each point, and one for each expectation that no point answers for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from testctl_agent.spec.types import shown

from testctl.compare.markdown import cell
from testctl.compare.terminal import tuple_words
from testctl.compare.verdicts import Change, JudgedCase, Status, Verdicts
from testctl.plan import ExpectationVerdict
from testctl.plan.diagnostics import Place
from testctl.report.factors import ABSENT, Factor, factors
from testctl.report.failures import failure_lines, failures_first
from testctl.report.metrics import columns, metric_texts
from testctl.results import Run, RunPoint

_STATUS: dict[str, Status] = {"pass": "pass", "fail": "fail", "skip": "skip", "invalid": "error", "broken": "error"}
_WRONG = ("fail", "invalid", "broken")
MOST_POINTS = 100
"""Points in the table of a page."""


def of_run(run: Run, plan: str) -> Verdicts:
    """A case for each point of one run; plan: the URI of the plan's file."""
    expected = [ExpectationVerdict.from_json(entry) for entry in run.summary.get("expectations") or ()]
    metrics = [e.metric for e in expected]
    varying = factors(run.points)
    of_point: dict[str, list[ExpectationVerdict]] = {point.id: [] for point in run.points}
    for e in expected:
        for id_ in e.points if not e.alone else ():
            of_point.setdefault(id_, []).append(e)
    cases = [_of_point(point, of_point[point.id], metrics, varying) for point in run.points]
    wrong = {point.id for point in run.points if point.verdict in _WRONG}
    cases += [_of_expectation(e) for e in expected if e.verdict in _WRONG and (e.alone or not wrong & {*e.points})]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in (run.summary.get("counts") or {}).items() if n)
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


def _of_point(
    point: RunPoint, there: Sequence[ExpectationVerdict], metrics: Sequence[str], varying: Sequence[Factor]
) -> JudgedCase:
    findings: list[Change] = []
    if point.verdict != "pass":
        names = [e.name for e in there]
        for e in (e for e in there if e.verdict == point.verdict):
            text = f"{point.verdict}: {_part(point.reason, e.name, names)}"
            findings.append(Change(e.metric or "verdict", "worse", text, place=_place(e)))
        findings = findings or [Change("verdict", "worse", f"{point.verdict}: {point.reason}")]
    tuples = ((f"{entity}.{parameter}", shown(value)) for entity, parameter, value in point.tuples)
    properties = (("point", point.id), *tuples, *metric_properties(point, metrics))
    name = _swept(point, varying) or tuple_words(point.tuples)
    return JudgedCase(point.id, name, _STATUS[point.verdict], tuple(findings), point.wall_s, properties)


def _part(reason: str, name: str, names: Sequence[str]) -> str:
    """What a point's reason has about one of its expectations; the reason itself if it does not name that one."""
    start = reason.find(f"{name}: ")
    if start < 0:
        return reason
    ends = (reason.find(f"; {other}: ", start) for other in names)
    return reason[start : min((end for end in ends if end >= 0), default=len(reason))]


def _of_expectation(e: ExpectationVerdict) -> JudgedCase:
    """Of the quantifier `some`: each of its points passes."""
    change = Change(e.metric or "verdict", "worse", f"{e.name}: {e.detail}", place=_place(e))
    return JudgedCase("", f"expect {e.name}", _STATUS[e.verdict], (change,))


def _swept(point: RunPoint, varying: Sequence[Factor]) -> str:
    """What distinguishes a point from the others of its run, the same in every run of the plan."""
    levels = [(factor.label, factor.of.get(point.id, ABSENT)) for factor in varying]
    return " ".join(f"{label}={value}" for label, value in levels if value != ABSENT)


def _details(run: Run, expected: Sequence[ExpectationVerdict], varying: Sequence[Factor]) -> Iterator[tuple[str, ...]]:
    """What a page has beside the findings: the expectations, what failures share, the points."""
    if expected:
        rows = [f"| {e.verdict} | {cell(e.name)} | {cell(e.detail)} | {_line(e)} |" for e in expected]
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


def _place(e: ExpectationVerdict) -> Place | None:
    """None where the plan was in no file."""
    return Place.of(e.at) if e.at else None


def _line(e: ExpectationVerdict) -> str:
    return cell(f"{place.file}:{place.line}") if (place := _place(e)) and place.line else ""
