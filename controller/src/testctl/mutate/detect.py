# SPDX-License-Identifier: Apache-2.0
"""Whether plans detect a mutant: its points are run one after the other until a verdict says so."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from testctl.mutate.trial import Ran, run_point
from testctl.plan import Measured, Plan, Point, evaluate
from testctl.plan.judge import Judge
from testctl.testbeds.lab import LabTestbed

KINDS = ("expectation", "rule", "crash", "invalid")
"""What detects a mutant: an expectation of a plan, or a flow that fails; a rule of TCP; a warning of the kernel, or a
lab that ends or hangs; a measurement that can't be judged."""

MOST_CRASHES = 3
"""Points at which a mutant's lab crashes or hangs, after which no other is tried."""

At = tuple[int, str]
"""A point: the place of its plan among the plans, and its id there."""


@dataclass
class Campaign:
    """Common to all mutants: the plans, and their points without a mutant."""

    testbed: LabTestbed
    plans: Sequence[Plan]
    usual: dict[At, Ran] = field(default_factory=dict)

    def point(self, at: At) -> Point:
        return next(point for point in self.plans[at[0]].points if point.id == at[1])

    def unchanged(self, place: int, number: int = 0) -> dict[str, Measured]:
        """The points of a plan where a mutant changes nothing; all of them without one."""
        own = ((id_, ran) for (plan, id_), ran in self.usual.items() if plan == place)
        return {id_: ran.measured for id_, ran in own if not number or not ran.differs(number)}


@dataclass
class Record:
    """What became of a mutant.

    detected  kind -> (place of the plan, point, sentence) of the first point at which it is detected so
    differ    the points whose digest is another one, with the metric that changed most
    tried     the points that were run
    reached, different   how many points reach it, and at how many of them it gives another value
    """

    number: int
    detected: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    differ: list[tuple[int, str, str]] = field(default_factory=list)
    tried: list[At] = field(default_factory=list)
    reached: int = 0
    different: int = 0
    wall_s: float = 0.0

    @property
    def verdict(self) -> str:
        """The first of KINDS that detects it, or else: digest only, survived, not reached."""
        if not self.reached:
            return "not reached"
        return next((kind for kind in KINDS if kind in self.detected), "digest only" if self.differ else "survived")


def detections(plan: Plan, point: Point, results: Mapping[str, Measured]) -> dict[tuple[str, str], str]:
    """Everything by which a plan detects that a point is not as it has to be: (kind, name) -> sentence.

    results: of points; an expectation that needs others is left out
    """
    measured = results[point.id]
    if measured.verdict in ("broken", "skip"):
        return {("crash", ""): measured.reason}
    kinds = {"fail": "crash", "invalid": "invalid"}
    result = {(kinds[measured.verdict], ""): measured.reason} if measured.verdict in kinds else {}
    judge = Judge(replace(plan, points=tuple(other for other in plan.points if other.id in results)), results)
    for finding in judge.failed(point):
        result["expectation", "flow failed"] = finding.text
    result |= {("rule", rule): text for rule, text in judge.violated(point).items()}
    for expectation in plan.expectations:
        if expectation.bounds.given and expectation.quantifier == "every" and point in judge.about(expectation):
            finding = judge.one(expectation, point)
            if finding.verdict != "pass":
                kind = "expectation" if finding.verdict == "fail" else "invalid"
                result[kind, expectation.name] = finding.text
    if len(results) == len(plan.points):
        failed = (whole for whole in evaluate(plan, results)[1] if whole.alone and whole.verdict == "fail")
        result |= {("expectation", whole.name): f"{whole.name}: {whole.detail}" for whole in failed}
    return result


@cache
def _campaign(file: str) -> Campaign:
    campaign: Campaign = pickle.loads(Path(file).read_bytes())
    return campaign


def try_mutant(file: str, number: int, order: Sequence[At], work: Path) -> Record:
    """Run points in the order given until an expectation or a rule detects the mutant, or the kernel has crashed often
    enough, in a worker process.  file: the pickled Campaign."""
    campaign, record, crashes = _campaign(file), Record(number), 0
    results = {place: campaign.unchanged(place, number) for place in {place for place, _ in order}}
    for at in order:
        place, usual = at[0], campaign.usual[at]
        now = run_point(campaign.testbed, campaign.point(at), work / str(number), number, usual)
        record.tried.append(at)
        record.wall_s = round(record.wall_s + now.wall_s, 3)
        results[place][at[1]] = now.measured
        if now.digest != usual.digest:
            record.differ.append((*at, most_changed(usual.measured, now.measured)))
        for id_, kind, sentence in _new(campaign, record.tried, place, results[place]):
            record.detected.setdefault(kind, (place, id_, sentence))
        crashes += now.measured.verdict == "broken"
        if settled(record.detected, crashes):
            break
    return record


def settled(detected: Collection[str], crashes: int) -> bool:
    """Whether no other point need be tried: a warning, a crash or an invalid point names no fault of TCP, and
    another point may."""
    return "expectation" in detected or "rule" in detected or crashes >= MOST_CRASHES


def _new(
    campaign: Campaign, tried: Sequence[At], place: int, results: Mapping[str, Measured]
) -> Iterator[tuple[str, str, str]]:
    """What the points of a plan show with a mutant and do not show without it: point, kind, sentence."""
    plan, before = campaign.plans[place], campaign.unchanged(place)
    for at in tried:
        if at[0] == place:
            known = detections(plan, campaign.point(at), before)
            for key, sentence in detections(plan, campaign.point(at), results).items():
                if key not in known:
                    yield at[1], key[0], sentence


def most_changed(before: Measured, after: Measured) -> str:
    """The metric whose value changed most, relatively, such as "bulk retransmissions 12 → 14"; "" if none did."""
    changes = []
    for flow, metrics in before.metrics.items():
        for name, old in metrics.items():
            new = after.metrics.get(flow, {}).get(name)
            if isinstance(old, int | float) and isinstance(new, int | float) and old != new:
                changes.append((abs(new - old) / max(abs(old), abs(new)), f"{flow} {name} {old:.6g} → {new:.6g}"))
    return max(changes, default=(0.0, ""))[1]
