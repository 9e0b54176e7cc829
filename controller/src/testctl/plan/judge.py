# SPDX-License-Identifier: Apache-2.0
"""Compares results with a plan's expectations.  Pure functions, from numbers to verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from testctl.core.point import POINT_WIDE, Point
from testctl.core.temporal import Answers
from testctl.core.units import exact_metric
from testctl.core.words import counted
from testctl.plan import failures
from testctl.plan.allow import breaks, broken_rules
from testctl.plan.model import FAILURE, NO_FAILURE, Allowed, Bounds, Condition, Expectation, Levels, Number, Plan
from testctl.system.text import first_of

Verdict = Literal["pass", "fail", "invalid", "skip", "broken"]
FAILED: tuple[Verdict, ...] = ("fail", "invalid", "broken")
"""Verdicts that need attention."""
_POINTS_SHOWN = 5
"""Points that the detail of an expectation names."""


@dataclass(frozen=True)
class Judgement:
    """A point's verdict with its reason: of the measurement alone, or by the plan's expectations."""

    verdict: Verdict
    reason: str = ""

    def to_json(self) -> dict[str, str]:
        return {"verdict": self.verdict, "reason": self.reason}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Judgement:
        """Raises ValueError for an invalid document."""
        verdict: Any = document.get("verdict")
        if verdict not in get_args(Verdict):
            raise ValueError(f"want a verdict of {', '.join(get_args(Verdict))}; got {verdict!r}")
        return cls(verdict, str(document.get("reason") or ""))


@dataclass(frozen=True)
class Measured(Judgement):
    """The verdict of a point's measurement, before any expectation, and its metrics.

    metrics   {flow: {metric: number, text or None}}; point-wide metrics under "*"
    answers   what came of the conditions over the trace
    """

    metrics: Mapping[str, Mapping[str, Number | str | None]] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)


Results = Mapping[str, Measured]
"""By the ids of points."""


@dataclass(frozen=True)
class PointVerdict(Judgement):
    """A point's verdict by its plan's expectations; `reason` lists those that failed."""

    point: str = ""


@dataclass(frozen=True)
class ExpectationVerdict:
    """The verdict of an expectation; `points` determined it, the worst first; `at` is its place in the plan.

    alone  whether no single point can fail by it (the quantifier `some`)
    bounds what the metric itself is compared with, by "min", "max", "equals", in its unit
    """

    name: str
    verdict: Verdict
    detail: str
    points: tuple[str, ...]
    metric: str = ""
    at: str = ""
    alone: bool = False
    bounds: Mapping[str, Number] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "detail": self.detail,
            "points": list(self.points),
            "metric": self.metric,
            **({"at": self.at} if self.at else {}),
            **({"alone": True} if self.alone else {}),
            **({"bounds": dict(self.bounds)} if self.bounds else {}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ExpectationVerdict:
        """Of an entry of summary.json (results.shapes.HEAD)."""
        rest = {each.name: document[each.name] for each in fields(cls) if each.name in document}
        return cls(**{"detail": "", **rest, "points": tuple(document.get("points", ()))})


@dataclass(frozen=True)
class _Finding:
    """One expectation at one point.

    text   why, for the point
    worst  the reason of the worst flow, without the expectation's name
    gap    relative distance of that flow from the bound
    """

    point: str
    verdict: Verdict
    text: str
    worst: str = ""
    gap: float = 0.0


def meets(levels: Levels, condition: Condition) -> bool:
    return all(levels[index] in among for index, among in condition.items())


def counterpart(levels: Levels, than: Mapping[int, int]) -> Levels:
    return tuple(than.get(index, level) for index, level in enumerate(levels))


def matching(expectation: Expectation, points: Iterable[Point]) -> list[Point]:
    """The points an expectation is about.  A point is never compared with itself."""
    than = expectation.bounds.than
    selected = [point for point in points if meets(point.levels, expectation.when)]
    return [p for p in selected if not than or counterpart(p.levels, than) != p.levels]


def evaluate(plan: Plan, results: Results) -> tuple[list[PointVerdict], list[ExpectationVerdict]]:
    """Verdicts of every point and every expectation.

    A point that is skip, broken or invalid stays so.  One that passed fails with the first
    expectation of the quantifier `every` that does not hold there, and where a flow failed though no
    expectation is about its failure; it is invalid where an expectation can't be judged and none failed.
    """
    judge = Judge(plan, results)
    bounded = [e for e in plan.expectations if e.bounds.given]
    findings = [(e, [judge.one(e, point) for point in judge.about(e)]) for e in bounded]
    against: dict[str, list[_Finding]] = {}
    for expectation, measured in findings:
        for finding in measured:
            if expectation.quantifier == "every" and finding.verdict in ("fail", "invalid"):
                against.setdefault(finding.point, []).append(finding)
    points = []
    for point in plan.points:
        broken = [_Finding(point.id, "fail", text) for text in judge.violated(point).values()]
        others = [*judge.failed(point), *broken, *against.get(point.id, [])]
        points.append(_of_point(point, judge.measured(point.id), others))
    expected = [_of_expectation(plan, expectation, measured) for expectation, measured in findings]
    return points, [*expected, *(judge.allowed(entry) for entry in plan.allowed)]


def compared_with(plan: Plan, point: Point) -> set[tuple[Levels, int]]:
    """(levels, repeat) of the points that expectations (`than`) compare this one with."""
    about = (e for e in plan.expectations if e.bounds.than and e.quantifier == "every" and matching(e, [point]))
    return {(counterpart(point.levels, e.bounds.than), point.repeat) for e in about}


def verdict_alone(
    plan: Plan, point: Point, measured: Measured, others: Sequence[tuple[Point, Measured]] = ()
) -> PointVerdict | None:
    """The verdict of one point while others of its plan are still to be run.

    None where a comparison with another point (`than`) could still make it fail.
    others: finished points that it is compared with
    """
    own = [e for e in plan.expectations if e.bounds.given and e.quantifier == "every" and matching(e, [point])]
    there = {(other.levels, other.repeat) for other, _ in others}
    alone = tuple(
        e for e in own if not e.bounds.than or (counterpart(point.levels, e.bounds.than), point.repeat) in there
    )
    some = replace(plan, points=(point, *(other for other, _ in others)), expectations=alone)
    judged = evaluate(some, {point.id: measured} | {other.id: measured for other, measured in others})[0][0]
    is_open = measured.verdict == "pass" and judged.verdict != "fail" and len(alone) < len(own)
    return None if is_open else judged


def _of_point(point: Point, measured: Judgement, against: Sequence[_Finding]) -> PointVerdict:
    if measured.verdict != "pass":
        return PointVerdict(measured.verdict, measured.reason, point.id)
    if not against:
        return PointVerdict("pass", "", point.id)
    verdict: Verdict = "fail" if any(finding.verdict == "fail" for finding in against) else "invalid"
    return PointVerdict(verdict, "; ".join(finding.text for finding in against), point.id)


def _of_expectation(plan: Plan, expectation: Expectation, findings: Sequence[_Finding]) -> ExpectationVerdict:
    """every: the worst of fail, invalid, pass; some: pass with one pass.  Skipped points don't count."""
    by: dict[str, list[_Finding]] = {}
    for finding in findings:
        by.setdefault("invalid" if finding.verdict == "broken" else finding.verdict, []).append(finding)
    order: tuple[Verdict, ...] = (
        ("fail", "invalid", "pass") if expectation.quantifier == "every" else ("pass", "invalid", "fail")
    )
    verdict: Verdict = next((v for v in order if v in by), "skip")
    basis = by.get(verdict, [])
    if not findings:
        detail = "no point to judge"
    elif verdict in ("pass", "skip"):
        detail = _how_many(verdict, basis, findings)
    else:
        # Their number, their common values, the worst one, and some others by name.
        points = {point.id: point for point in plan.points}
        shared = _shared(plan, [points[f.point] for f in basis], [points[f.point] for f in findings])
        parts = [_how_many(verdict, basis, findings) + (f": {shared}" if shared else "")]
        basis = sorted(basis, key=lambda finding: -finding.gap)
        worst, others = basis[0], basis[1:]
        label = "worst: " if others and worst.gap else ""
        name = in_words(plan, points[worst.point])
        parts.append(f"{label}{worst.worst or worst.text}" + (f" ({name})" if name and name not in worst.text else ""))
        if others:
            named = [in_words(plan, points[finding.point]) or finding.point for finding in others]
            parts.append(f"also {first_of(named, _POINTS_SHOWN - 1)}")
        detail = "; ".join(parts)
    ids, at = tuple(finding.point for finding in basis), str(expectation.place)
    alone = expectation.quantifier == "some"
    return ExpectationVerdict(
        expectation.name, verdict, detail, ids, expectation.metric, at, alone, _numbers(expectation.bounds)
    )


def _numbers(bounds: Bounds) -> dict[str, Number]:
    named = {"min": bounds.least, "max": bounds.most, "equals": bounds.equals}
    return {name: value for name, value in named.items() if isinstance(value, int | float)}


_VERBS = {"pass": "pass", "fail": "fail", "invalid": "can't be judged", "skip": "were skipped"}
_VERBS_OF_ONE = _VERBS | {"pass": "passes", "fail": "fails", "skip": "was skipped"}


def _how_many(verdict: str, basis: Sequence[_Finding], findings: Sequence[_Finding]) -> str:
    """ "2 of 6 points fail", "1 of 1 point passes"."""
    verbs = _VERBS_OF_ONE if len(findings) == 1 else _VERBS
    return f"{len(basis)} of {counted(len(findings), 'point')} {verbs[verdict]}"


def _shared(plan: Plan, basis: Sequence[Point], points: Sequence[Point]) -> str:
    """Values common to the points of `basis` and absent from other points."""
    swept = [(index, assignment) for index, assignment in enumerate(plan.assignments) if len(assignment.texts) > 1]
    there = {point.id for point in basis}
    values = [{a.key: a.texts[point.levels[index]] for index, a in swept} for point in points]
    return failures.in_words(values, [point.id in there for point in points])


def in_words(plan: Plan, point: Point) -> str:
    """What distinguishes a point from the others of its plan, such as "hosts.cc=cubic switch.delay=10ms"; may be ""."""
    swept = [f"{a.key}={a.texts[point.levels[i]]}" for i, a in enumerate(plan.assignments) if len(a.texts) > 1]
    return " ".join([*swept, *([f"#{point.repeat}"] if plan.repeat > 1 else [])])


class Judge:
    """Looks up results and evaluates an expectation at one point."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self._plan = plan
        self._results = results
        self._at = {(point.levels, point.repeat): point for point in plan.points}

    def about(self, expectation: Expectation) -> list[Point]:
        """The points of an expectation; in a partial run those whose point of comparison was run."""
        than = expectation.bounds.than
        selected = matching(expectation, self._plan.points)
        return [p for p in selected if not than or (counterpart(p.levels, than), p.repeat) in self._at]

    def measured(self, point: str) -> Measured:
        return self._results.get(point) or Measured("broken", "it has no result")

    def failed(self, point: Point) -> list[_Finding]:
        """The flows that failed though no expectation is about their failure: one finding, or none."""
        measured = self.measured(point.id)
        failing = {
            flow: failure
            for flow, of in measured.metrics.items()
            if (failure := of.get(FAILURE)) not in (None, NO_FAILURE)
        }
        about = [e for e in self._plan.expectations if e.metric == FAILURE and meets(point.levels, e.when)]
        expected = {flow for e in about for flow in e.flows}
        other = [f"flow {flow} failed: {text}" for flow, text in failing.items() if flow not in expected]
        if not other:
            return []
        text = measured.reason if measured.reason and len(other) == len(failing) else "; ".join(other)
        return [_Finding(point.id, "fail", text)]

    def violated(self, point: Point) -> dict[str, str]:
        """The rules of TCP that a flow broke though the plan does not allow it, with a sentence for each."""
        allowed = {entry.rule for entry in self._plan.allowed if meets(point.levels, entry.when)}
        return broken_rules(self.measured(point.id).metrics, allowed)

    def allowed(self, entry: Allowed) -> ExpectationVerdict:
        """Which points break a rule that the plan allows them to break."""
        may = [point for point in self._plan.points if meets(point.levels, entry.when)]
        broke = tuple(point.id for point in may if breaks(self.measured(point.id).metrics, entry.rule))
        name = f"{entry.rule} may be broken: {entry.reason}"
        return ExpectationVerdict(name, "pass", f"{len(broke)} of {counted(len(may), 'point')} break it", broke)

    def one(self, expectation: Expectation, point: Point) -> _Finding:
        """The verdict over all flows of the expectation: fail before invalid before pass."""
        measured = self.measured(point.id)
        if measured.verdict not in ("pass", "fail"):
            why = f": {measured.reason}" if measured.reason else ""
            return _Finding(point.id, measured.verdict, f"point {point.id} is {measured.verdict}{why}")
        verdicts = [self._flow(expectation, point, flow) for flow in self.flows(expectation, point)]
        order: tuple[Verdict, ...] = ("fail", "invalid")
        for verdict in order:
            of_verdict = [(text, gap) for of_flow, text, gap in verdicts if of_flow == verdict]
            if of_verdict:
                reason, gap = max(of_verdict, key=lambda pair: pair[1])
                text = f"{expectation.name}: {'; '.join(text for text, _ in of_verdict)}"
                return _Finding(point.id, verdict, text, reason, gap)
        return _Finding(point.id, "pass", "")

    def flows(self, expectation: Expectation, point: Point) -> tuple[str, ...]:
        wide = self.measured(point.id).metrics.get(POINT_WIDE, {})
        return (POINT_WIDE,) if expectation.metric in wide else expectation.flows

    def _flow(self, expectation: Expectation, point: Point, flow: str) -> tuple[Verdict, str, float]:
        """(verdict, reason, relative distance from the bound)."""
        bounds = expectation.bounds
        if bounds.over_time is not None:
            answer = self.measured(point.id).answers.get(bounds.over_time.key, {}).get(flow, {})
            known: dict[str, Verdict] = {"pass": "pass", "fail": "fail"}
            verdict = known.get(str(answer.get("verdict")), "invalid")
            text = f"{bounds.over_time.signal} of {flow} was not judged"
            return verdict, str(answer.get("text") or text), float(answer.get("gap", 0.0))
        who = f"{expectation.metric} of {flow}" if flow != POINT_WIDE else expectation.metric
        try:
            value, base = self.values(expectation, point, flow)
        except ValueError as error:
            return "invalid", str(error), 0.0
        if isinstance(value, str) or base is None:
            wrong = _outside(expectation.metric, value, bounds)
            text = f"{who}: want {wrong}; got {exact_metric(expectation.metric, value)}"
            return ("fail", text, _gap(value, bounds, bounds.least, bounds.most)) if wrong else ("pass", "", 0.0)
        other = self._at[counterpart(point.levels, bounds.than), point.repeat]
        wrong = _apart(expectation.metric, value, base, bounds)
        where = " and ".join(
            [*([f"of {bounds.beside}"] if bounds.beside else []), *([f"at point {other.id}"] if bounds.than else [])]
        )
        text = f"{who}: want {wrong} {where}; got {exact_metric(expectation.metric, value)}"
        low, high = (None if ratio is None else ratio * base for ratio in (bounds.at_least, bounds.at_most))
        return ("fail", text, _gap(value, bounds, low, high)) if wrong else ("pass", "", 0.0)

    def values(self, expectation: Expectation, point: Point, flow: str) -> tuple[Number | str, Number | None]:
        """The metric, and the same at the point that `than` names (None without `than`; both are numbers with it).

        Raises ValueError that names the missing value.
        """
        metric, than, beside = expectation.metric, expectation.bounds.than, expectation.bounds.beside
        who = f"{metric} of {flow}" if flow != POINT_WIDE else metric
        value = self._value(point, flow, metric)
        if value is None:
            differ = self._value(point, POINT_WIDE, "counter_mismatches") or "none"
            why = [expectation.null] if expectation.null else []
            why += [] if differ == "none" else [f"the kernel's counters differ: {differ}"]
            raise ValueError(": ".join([f"{who} has no value", *(["; ".join(why)] if why else [])]))
        if not than and not beside:
            return value, None
        other = self._at[counterpart(point.levels, than), point.repeat]
        verdict = self.measured(other.id).verdict
        if verdict not in ("pass", "fail"):
            raise ValueError(f"{who}: the point to compare with, {other.id}, is {verdict}")
        base = self._value(other, beside or flow, metric)
        if base is None:
            of = f"{metric} of {beside}" if beside else who
            raise ValueError(f"{of} has no value at point {other.id}, to compare with")
        if isinstance(value, str) or isinstance(base, str):
            raise ValueError(f"{who}: want numbers to compare; got {value} and {base}")
        return value, base

    def _value(self, point: Point, flow: str, metric: str) -> Number | str | None:
        """None for a value that is missing or not a number."""
        value = self.measured(point.id).metrics.get(flow, {}).get(metric)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        return None if isinstance(value, float) and math.isnan(value) else value


def _outside(metric: str, value: Number | str, bounds: Bounds) -> str:
    """The violated bound as text; "" if the value meets all."""
    if metric == FAILURE and isinstance(bounds.equals, str):
        return "" if bounds.equals in str(value).split(", ") else bounds.equals
    if bounds.equals is not None:
        if isinstance(bounds.equals, str) or isinstance(value, str):
            return "" if str(value) == str(bounds.equals) else str(bounds.equals)
        margin = bounds.tolerance * (abs(bounds.equals) if bounds.relative else 1)
        if value == bounds.equals or abs(value - bounds.equals) <= margin:
            return ""
        return exact_metric(metric, bounds.equals) + (f" ± {exact_metric(metric, margin)}" if margin else "")
    if isinstance(value, str):
        return "a number"
    if bounds.least is not None and value < bounds.least:
        return f"at least {exact_metric(metric, bounds.least)}"
    if bounds.most is not None and value > bounds.most:
        return f"at most {exact_metric(metric, bounds.most)}"
    return ""


def _apart(metric: str, value: Number, base: Number, bounds: Bounds) -> str:
    """The violated ratio as text; "" if it is met."""
    if bounds.at_least is not None and value < bounds.at_least * base:
        return f"at least {bounds.at_least:.6g} times {exact_metric(metric, base)}"
    if bounds.at_most is not None and value > bounds.at_most * base:
        return f"at most {bounds.at_most:.6g} times {exact_metric(metric, base)}"
    return ""


def _gap(value: Number | str, bounds: Bounds, low: Number | None, high: Number | None) -> float:
    """Relative distance of a value from its bounds; 0 for text."""
    if isinstance(value, str):
        return 0.0
    away: list[tuple[Number, Number]] = []
    if low is not None:
        away.append((low - value, low))
    if high is not None:
        away.append((value - high, high))
    if isinstance(bounds.equals, int | float):
        away.append((abs(value - bounds.equals), bounds.equals))
    return max((distance / (abs(bound) or 1.0) for distance, bound in away), default=0.0)
