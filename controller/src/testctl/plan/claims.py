# SPDX-License-Identifier: Apache-2.0
"""Compares results with published ones.  Pure functions, from numbers to claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any, Literal

from testctl_agent.spec.errors import PlanError

from testctl.core.point import Point
from testctl.plan.judge import ExpectationVerdict, Judge, Results
from testctl.plan.model import Bounds, Expectation, Number, Paper, Plan
from testctl.system.text import first_of

ClaimVerdict = Literal["reproduced", "differs", "holds", "fails", "not measured"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "differs", "holds", "fails", "not measured")
_OF_PROPERTY: Mapping[str, ClaimVerdict] = {"pass": "holds", "fail": "fails"}
_ROUNDING = 1e-12
_WORDS_SHOWN = 3


@dataclass(frozen=True)
class Ours:
    """A metric over the points of a claim: its mean and range, or its text; empty where it has no value.

    points    how many points have a value
    selected  how many the claim is about
    """

    mean: float | None = None
    least: float | None = None
    most: float | None = None
    text: str = ""
    points: int = 0
    selected: int = 0


@dataclass(frozen=True)
class Claim:
    """What a paper says, what this run found, and the verdict.

    than                the point that a ratio refers to; "" for the metric itself
    want                the bounds of the expectation, such as "at least 5"; "" without any
    difference_percent  ours / published - 1; None for a property, and where published is 0
    within              relative difference that counts as reproduced; None for a property
    found               the evidence for the verdict of a property, or why nothing was measured
    """

    plan: str
    claim: str
    source: str
    metric: str
    than: str
    want: str
    published: Number | str
    within: Number | None
    ours: Ours
    difference_percent: float | None
    verdict: ClaimVerdict
    why: str
    found: str

    @property
    def numeric(self) -> bool:
        """Whether a number was published."""
        return not isinstance(self.published, str)

    @property
    def left_out(self) -> bool:
        """Whether --set or --kernel left no point for it."""
        return self.verdict == "not measured" and self.ours.selected == 0

    @property
    def open(self) -> str:
        """Missing parts: a value, or the reason of a difference."""
        if self.verdict == "not measured" and not self.left_out:
            return self.found
        if self.verdict in ("differs", "fails") and not self.why:
            return f"{self.verdict}, and its `why` is missing"
        return ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Claim:
        """Raises PlanError for a verdict of another testctl."""
        if document["verdict"] not in CLAIM_VERDICTS:
            raise PlanError(f"claim {document['claim']}: want a verdict of these: {', '.join(CLAIM_VERDICTS)}")
        ours = Ours(**{each.name: document["ours"][each.name] for each in fields(Ours)})
        return cls(**{each.name: document[each.name] for each in fields(cls)} | {"ours": ours})


def evaluate_claims(plan: Plan, results: Results, expectations: Sequence[ExpectationVerdict]) -> list[Claim]:
    """The claims of a plan, in its order.

    expectations: their verdicts, which `evaluate` returns

    A published number is compared with the mean over points and flows.  With the quantifier `some`
    points without a value are left out, with `every` they make the claim "not measured"; points that
    were skipped never count.
    """
    judge = Judge(plan, results)
    held = {judged.name: judged for judged in expectations}
    claims = []
    for expectation in plan.expectations:
        if (paper := expectation.paper) is None:
            continue
        points = judge.about(expectation)
        over_time = expectation.bounds.over_time
        ours, missing = (_held(judge, points), "") if over_time else _measure(judge, expectation, points)
        verdict: ClaimVerdict
        difference, within, text = None, None, missing
        if not points:
            verdict, text = "not measured", "no point of this run meets its `when`"
        elif isinstance(paper.published, str):
            judged = held[expectation.name]
            verdict = _OF_PROPERTY.get(judged.verdict, "not measured")
            text = judged.detail
        else:
            within = paper.within
            verdict, difference, text = _compare(paper, paper.published, ours, missing)
        claims.append(
            Claim(
                plan=plan.name,
                claim=expectation.name,
                source=paper.source,
                metric=f"{over_time.signal} over time" if over_time else expectation.metric,
                than=_than(plan, expectation),
                want=_want(expectation.bounds),
                published=paper.published,
                within=within,
                ours=ours,
                difference_percent=difference,
                verdict=verdict,
                why=paper.why,
                found=text,
            )
        )
    return claims


def _compare(paper: Paper, published: Number, ours: Ours, missing: str) -> tuple[ClaimVerdict, float | None, str]:
    """(verdict, difference in percent, why there is no verdict)."""
    if missing or ours.mean is None:
        return "not measured", None, missing or f"want a number; got {ours.text or 'none'}"
    difference = (ours.mean / published - 1) * 100 if published else None
    near = abs(ours.mean - published) <= (paper.within + _ROUNDING) * abs(published)
    return ("reproduced" if near else "differs"), difference, ""


def _held(judge: Judge, points: Sequence[Point]) -> Ours:
    """Of a condition over time there is no value, but the points where it was judged."""
    measured = sum(judge.measured(point.id).verdict in ("pass", "fail") for point in points)
    return Ours(points=measured, selected=len(points))


def _measure(judge: Judge, expectation: Expectation, points: Sequence[Point]) -> tuple[Ours, str]:
    """Our value, and why it is incomplete ("" if it is complete)."""
    values: list[float | str] = []
    missing: list[str] = []
    skipped: list[str] = []
    measured = 0
    for point in points:
        judged = judge.measured(point.id)
        if judged.verdict in ("pass", "fail"):
            results, lacking = _at(judge, expectation, point)
            values += results
            missing += lacking
            measured += bool(results)
        else:
            why = f": {judged.reason}" if judged.reason else ""
            (skipped if judged.verdict == "skip" else missing).append(f"point {point.id} is {judged.verdict}{why}")
    texts = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if not isinstance(value, str)]
    ours = Ours(text=first_of(list(dict.fromkeys(texts)), _WORDS_SHOWN, "; "), points=measured, selected=len(points))
    if numbers and not texts:
        ours = Ours(fmean(numbers), min(numbers), max(numbers), "", measured, len(points))
    if not values:
        return ours, (missing or skipped or ["no point has a value"])[0]
    return ours, missing[0] if missing and expectation.quantifier == "every" else ""


def _at(judge: Judge, expectation: Expectation, point: Point) -> tuple[list[float | str], list[str]]:
    """The values of a point's flows, and why some have none."""
    values: list[float | str] = []
    lacking = []
    for flow in judge.flows(expectation, point):
        try:
            values.append(_value(*judge.values(expectation, point, flow)))
        except ValueError as error:
            lacking.append(f"point {point.id}: {error}")
    return values, lacking


def _value(value: Number | str, base: Number | None) -> float | str:
    """The metric, or its ratio to `base`.  Raises ValueError when that is not a finite number."""
    if isinstance(value, str):
        return value
    if base == 0:
        raise ValueError("the value to compare with is 0")
    number = float(value) if base is None else value / base
    if math.isinf(number):
        raise ValueError("the value is infinite")
    return number


def _than(plan: Plan, expectation: Expectation) -> str:
    """`than` as text, such as "hosts.cc reno_prr"."""
    named = [f"flow {expectation.bounds.beside}"] if expectation.bounds.beside else []
    for index, level in expectation.bounds.than.items():
        assignment = plan.assignments[index]
        named.append(f"{assignment.key} {assignment.texts[level] if level >= 0 else '(taken away)'}")
    return ", ".join(named)


def _want(bounds: Bounds) -> str:
    """The bounds as text, in the metric's unit or as ratios."""
    if bounds.equals is not None:
        margin = f"{bounds.tolerance * 100:g}%" if bounds.relative else f"{bounds.tolerance:g}"
        return f"exactly {bounds.equals}" if not bounds.tolerance else f"{bounds.equals} ± {margin}"
    least = bounds.at_least if bounds.least is None else bounds.least
    most = bounds.at_most if bounds.most is None else bounds.most
    both = (("at least", least), ("at most", most))
    return " and ".join(f"{word} {value:g}" for word, value in both if value is not None)
