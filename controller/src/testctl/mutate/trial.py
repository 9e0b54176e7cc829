# SPDX-License-Identifier: Apache-2.0
"""Points on a kernel with one of its mutants active, until the plan detects it."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.execution.point import measure
from testctl.plan import Measured, Plan
from testctl.plan.judge import Judge
from testctl.results import PointResult
from testctl.testbeds.lab import LabTestbed

KINDS = ("expectation", "rule", "crash", "invalid")
"""By what a plan detects a mutant: one of its expectations or a failed flow; a rule of TCP; a warning of the kernel, a
lab that ended or hung; instruments that disagree or an action that did not happen."""

MIN_WALL_S, TIMES_WALL = 20.0, 10.0
MORE_BYTES, TIMES_BYTES = 20 << 20, 10
SEEN = "mutants"
"""The file in a point's raw files that says which mutants it reached (lab/boot/first_process.py)."""

At = tuple[int, str]
"""A point: the place of its plan, and its id there."""


@dataclass(frozen=True)
class Ran:
    """A point with a mutant, or without any: what was measured, and what it cost.

    raw        hash of the raw files and of the outcome, which determine everything else
    raw_bytes  size of the raw files
    seen       a hexadecimal digit for two mutants (lab/kernel/variants/mutants_switch.c)
    """

    measured: Measured
    digest: str
    wall_s: float
    raw: str
    raw_bytes: int
    seen: str = ""

    def reached(self, number: int) -> bool:
        return bool(self._bits(number) & 1)

    def differs(self, number: int) -> bool:
        """Whether the mutant was reached and gives another value there at least once."""
        return bool(self._bits(number) & 2)

    def _bits(self, number: int) -> int:
        digit = self.seen[(number - 1) // 2 : (number - 1) // 2 + 1] or "0"
        return int(digit, 16) >> (0 if number % 2 else 2) & 3


@dataclass(frozen=True)
class Lab:
    """The lab with a mutant active: a testbed whose points end soon after they would without it."""

    testbed: LabTestbed
    number: int
    most_bytes: int = 0

    def code_key(self, point: Point) -> str:
        return self.testbed.code_key(point)

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        parameters = ("oops=panic", f"testctl_mutants.active={self.number}")
        spec, outcome = replace(self.testbed, parameters=parameters).run(point, workdir)
        got = size_of(workdir)
        if self.most_bytes and got > self.most_bytes:
            raise TestbedError(f"its packets took {got >> 20} MB; without the mutant at most {self.most_bytes >> 20}")
        return spec, outcome


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def hash_of(outcome: Outcome, raw: Path) -> str:
    """Of all that a lab left of a point but wall-clock times and the mutants that it reached."""
    digest = hashlib.sha256(json.dumps({**outcome.to_json(), "wall": None}, sort_keys=True).encode())
    for path in sorted(path for path in raw.rglob("*") if path.is_file() and path.name != SEEN):
        digest.update(f"{path.relative_to(raw)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def run_point(testbed: LabTestbed, point: Point, work: Path, number: int = 0, usual: Ran | None = None) -> Ran:
    """Run a point in a new directory, which is removed.

    usual: the point without a mutant, by which its time is limited, and whose result it has where it left the same
    """
    most, clock = 0, time.monotonic()
    if usual is not None:
        testbed = replace(testbed, wall_limit_s=max(MIN_WALL_S, TIMES_WALL * usual.wall_s))
        most = MORE_BYTES + TIMES_BYTES * usual.raw_bytes
    raw = ""

    def known(outcome: Outcome, where: Path) -> PointResult | None:
        nonlocal raw
        raw = hash_of(outcome, where)
        return PointResult({}, usual.measured.verdict) if usual is not None and raw == usual.raw else None

    shutil.rmtree(work, ignore_errors=True)
    try:
        result = measure(Lab(testbed, number, most), point, work, False, known)
        wall_s = round(time.monotonic() - clock, 3)
        if usual is not None and raw == usual.raw:
            return replace(usual, wall_s=wall_s)
        seen = work / "raw" / SEEN
        return Ran(
            result.measured,
            result.records.digest() if result.records is not None else "",
            wall_s,
            raw,
            size_of(work),
            seen.read_text(encoding="ascii").rstrip("0\n") if seen.is_file() else "",
        )
    finally:
        shutil.rmtree(work, ignore_errors=True)


def detections(plan: Plan, point: Point, results: Mapping[str, Measured]) -> dict[tuple[str, str], str]:
    """Everything by which a plan detects that a point is not as it has to be: (kind, name) -> sentence.

    results: of points; an expectation that compares with another one is left out
    """
    measured = results[point.id]
    if measured.verdict in ("broken", "fail", "skip"):
        return {("crash", ""): measured.reason}
    found = {("invalid", ""): measured.reason} if measured.verdict == "invalid" else {}
    there = tuple(other for other in plan.points if other.id in results)
    judge = Judge(replace(plan, points=there), results)
    for finding in judge.failed(point):
        found["expectation", "flow failed"] = finding.text
    for finding in judge.violated(point):
        found["rule", finding.text.removeprefix("the rule ").partition(" ")[0]] = finding.text
    for expectation in plan.expectations:
        if expectation.bounds.given and expectation.quantifier == "every" and point in judge.about(expectation):
            finding = judge.one(expectation, point)
            if finding.verdict == "fail":
                found["expectation", expectation.name] = finding.text
            elif finding.verdict == "invalid":
                found.setdefault(("invalid", expectation.name), finding.text)
    return found


@dataclass
class Campaign:
    """What workers share: the plans, and their points without a mutant."""

    testbed: LabTestbed
    plans: Sequence[Plan]
    usual: dict[At, Ran] = field(default_factory=dict)

    def point(self, at: At) -> Point:
        return next(point for point in self.plans[at[0]].points if point.id == at[1])


@dataclass
class Record:
    """What became of a mutant.

    found   kind -> (plan, point, sentence) of the first point that shows it so
    differ  the points whose digest is another one
    tried   the points that were run, by the place of their plan
    reached, different   how many points reach it, and at how many it gives another value
    """

    number: int
    found: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    differ: list[tuple[str, str]] = field(default_factory=list)
    tried: list[At] = field(default_factory=list)
    reached: int = 0
    different: int = 0
    wall_s: float = 0.0

    @property
    def verdict(self) -> str:
        """The first of KINDS that detects it, digest only, survived, or not reached."""
        if not self.reached:
            return "not reached"
        return next((kind for kind in KINDS if kind in self.found), "digest only" if self.differ else "survived")


@cache
def _campaign(file: str) -> Campaign:
    campaign: Campaign = pickle.loads(Path(file).read_bytes())
    return campaign


def try_mutant(file: str, number: int, order: Sequence[At], work: Path) -> Record:
    """Run points in the order given until one is detected, in a worker process.  file: the pickled campaign."""
    campaign, record = _campaign(file), Record(number)
    results: dict[int, dict[str, Measured]] = {}
    for place, _ in order:  # where the mutant changes nothing, points are as without it
        results[place] = {
            id_: ran.measured for (plan, id_), ran in campaign.usual.items() if plan == place and not ran.differs(number)
        }
    for at in order:
        usual = campaign.usual[at]
        now = run_point(campaign.testbed, campaign.point(at), work / str(number), number, usual)
        record.tried.append(at)
        record.wall_s += now.wall_s
        results[at[0]][at[1]] = now.measured
        if now.digest != usual.digest:
            record.differ.append((campaign.plans[at[0]].name, at[1]))
        for place, id_, kind, sentence in _new(campaign, record.tried, at[0], results[at[0]]):
            record.found.setdefault(kind, (campaign.plans[place].name, id_, sentence))
        if record.found:
            break
    return record


def _new(
    campaign: Campaign, tried: Sequence[At], place: int, results: Mapping[str, Measured]
) -> Iterator[tuple[int, str, str, str]]:
    """What the points of a plan show with a mutant and do not show without it."""
    plan = campaign.plans[place]
    before = {id_: usual.measured for (of, id_), usual in campaign.usual.items() if of == place}
    for at in tried:
        if at[0] == place:
            point = campaign.point(at)
            known = detections(plan, point, before)
            for (kind, name), sentence in detections(plan, point, results).items():
                if (kind, name) not in known:
                    yield place, at[1], kind, sentence
