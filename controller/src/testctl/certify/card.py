# SPDX-License-Identifier: Apache-2.0
"""The scorecard: a row for each criterion, a cell for each congestion control.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testctl.certify.criteria import NOT_COVERED, Criterion
from testctl.core.words import counted
from testctl.plan import Plan
from testctl.plan.allow import breaks, broken_rules
from testctl.plan.judge import Judge, evaluate
from testctl.plan.model import Allowed
from testctl.report.expectations import judged
from testctl.results import Run, RunPoint, run_digest
from testctl.results.layout import SCORECARD_DATA, SCORECARD_PAGE
from testctl.rules import rules

KIND = "certify"
FEW = 4
"""Congestion controls whose verdicts are written out side by side; of more there are signs, and what each fails."""
RULES = "rules"
"""The key of the last row: what all criteria's points say of the rules of TCP."""
RULES_SOURCE = "RFC 9743, 5.3.1"
RULES_ABOUT = "no rule of TCP is broken at these points; a deviation is to be explained"
VERDICTS = ("fail", "invalid", "pass", "skip")


@dataclass(frozen=True)
class Cell:
    """A criterion's verdict for one congestion control.

    why    a sentence for each expectation: its bound and the values
    point  the one that shows it: the worst of a failed expectation
    metric that expectation's
    by     its name
    shrunk the smallest set of tuples that still fails, in words, and a plan of it; None: not searched
    """

    criterion: Criterion
    run: Run
    verdict: str
    why: tuple[str, ...]
    point: str
    metric: str = ""
    by: str = ""
    shrunk: tuple[str, Path] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "why": list(self.why),
            "point": self.point,
            "points": len(self.criterion.tested),
            "run": str(self.run.path),
            "digest": self.run.digest,
            **({"smallest": self.shrunk[0], "plan": str(self.shrunk[1])} if self.shrunk else {}),
        }


def cell_of(criterion: Criterion, run: Run) -> Cell:
    """The worst verdict of the points that count; broken counts as invalid.  Broken rules have a row of their own."""
    allowing = replace(criterion.plan, allowed=tuple(Allowed(rule, RULES, {}) for rule in rules()))
    judgements, _ = evaluate(allowing, {point.id: point.measured for point in run.points})
    points = [point for point in judgements if point.point in criterion.tested]
    found = {"invalid" if point.verdict == "broken" else point.verdict: point for point in reversed(points)}
    expectations = [e for e in judged(run.summary, run.points, run.plan_text) if e.points]
    alone = (item for item in run.summary.get("expectations", []) if item.get("alone"))  # no single point fails by it
    verdicts = {*found, *(str(item["verdict"]) for item in alone if item["points"])}
    verdict = next((name for name in VERDICTS if name in verdicts), "skip")
    wrong = [e for e in expectations if e.verdict == verdict != "pass"]
    if wrong:
        why = tuple(f"{e.name}: {e.detail}" for e in wrong)
    elif verdict == "pass":
        of = _ratios(criterion.plan, run)
        why = tuple(f"{e.name}: {e.metric} {e.bound}, found {of.get(e.name, e.observed)}" for e in expectations)
        why = why or ("it is the one that others are compared with",)
    else:
        why = (found[verdict].reason if verdict in found else "no point was run",)
    first = {item["name"]: item["points"][0] for item in run.summary.get("expectations", []) if item["points"]}
    worst = first[wrong[0].name] if wrong else found[verdict].point if verdict in found else ""
    metric, by = (wrong[0].metric, wrong[0].name) if wrong else ("", "")
    return Cell(criterion, run, verdict, why, worst, metric, by)


def rules_cell(cells: Sequence[Cell]) -> Cell:
    """Which rules of TCP were broken at the points of all criteria, the most frequent first; the point of the first."""
    tested = [(cell, point) for cell in cells for point in cell.run.points if point.id in cell.criterion.tested]
    points = [(cell, point) for cell, point in tested if point.verdict not in ("skip", "broken")]
    broken: dict[str, list[tuple[Cell, RunPoint]]] = {}
    for cell, point in points:
        for rule in set(rules()) - {entry.rule for entry in cell.criterion.plan.allowed}:
            if breaks(point.metrics, rule):
                broken.setdefault(rule, []).append((cell, point))
    worst = sorted(broken.items(), key=lambda item: (-len(item[1]), item[0]))
    why = tuple(
        f"at {len(among)} of {counted(len(points), 'point')}, such as one of {among[0][0].criterion.name}: "
        + broken_rules(among[0][1].metrics, ())[rule]
        for rule, among in worst
    )
    cell, first = worst[0][1][0] if worst else (cells[0], None)
    criterion = replace(cell.criterion, key=RULES, source=RULES_SOURCE, level="should", about=RULES_ABOUT,
                        tested=frozenset(point.id for _, point in points))  # fmt: skip
    none = f"none of {len(rules())} rules is broken at {counted(len(points), 'point')}"
    verdict = "fail" if why else "pass" if points else "skip"
    return Cell(criterion, cell.run, verdict, why or (none if points else "no point was measured",),
                first.id if first else "")  # fmt: skip


def _ratios(plan: Plan, run: Run) -> dict[str, str]:
    """Of each expectation that compares, by its name: "0.71 … 1.9 times as much"."""
    judge, shown = Judge(plan, {point.id: point.measured for point in run.points}), {}
    for expectation in plan.expectations:
        compared = expectation.bounds.than or expectation.bounds.beside
        pairs = [
            judge.values(expectation, point, flow)
            for point in (judge.about(expectation) if compared else ())
            for flow in judge.flows(expectation, point)
        ]
        ratios = [float(value) / base for value, base in pairs if base]
        if ratios:
            ends = dict.fromkeys(f"{end:.2g}" for end in (min(ratios), max(ratios)))
            shown[expectation.name] = f"{' … '.join(ends)} times as much"
    return shown


@dataclass(frozen=True)
class Card:
    """cells: congestion control -> its cells, in the order of the criteria; the first one is the one that is tested.

    started   UTC, ISO 8601
    command   that makes it again
    """

    cells: Mapping[str, Sequence[Cell]]
    kernel: str
    started: str
    wall_s: float
    command: str

    @property
    def cc(self) -> str:
        return next(iter(self.cells))

    @property
    def own(self) -> Sequence[Cell]:
        return self.cells[self.cc]

    @property
    def digest(self) -> str:
        """sha256 over sorted lines `<congestion control> <criterion> <digest of its run>`."""
        every = ((cc, cell) for cc, of in self.cells.items() for cell in of if cell.criterion.key != RULES)
        return run_digest((f"{cc} {cell.criterion.key}", cell.run.digest) for cc, cell in every)

    @property
    def counts(self) -> dict[str, int]:
        counted = Counter(cell.verdict for cell in self.own)
        return {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}

    @property
    def musts(self) -> str:
        """How many of the criteria that MUST be evaluated do not pass: "2 of 9"."""
        verdicts = [cell.verdict for cell in self.own if cell.criterion.level == "MUST"]
        return f"{len(verdicts) - verdicts.count('pass')} of {len(verdicts)}"

    @property
    def exit_code(self) -> int:
        """3: a criterion can't be judged; 1: one that MUST be evaluated fails; 0."""
        if any(cell.verdict in ("invalid", "skip") for cell in self.own):
            return 3
        return int(any(cell.verdict == "fail" and cell.criterion.level == "MUST" for cell in self.own))

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "cc": self.cc,
            "kernel": self.kernel,
            "command": self.command,
            "digest": self.digest,
            "started": self.started,
            "wall_s": round(self.wall_s, 3),
            "exit_code": self.exit_code,
            "counts": self.counts,
            "criteria": [
                {
                    "name": cells[0].criterion.key,
                    "source": cells[0].criterion.source,
                    "level": cells[0].criterion.level,
                    "about": cells[0].criterion.about,
                    "results": {cc: cell.to_json() for cc, cell in zip(self.cells, cells, strict=True)},
                }
                for cells in zip(*self.cells.values(), strict=True)
            ],
            "not_covered": NOT_COVERED,
        }


FILES = {"json": SCORECARD_DATA, "html": SCORECARD_PAGE}
