# SPDX-License-Identifier: Apache-2.0
"""The criteria: plans of plans/certify/, each about the flows of its group `tested`.

The first sentence of a plan's `about` names the source of its criterion: "RFC 9743, 5.1.3 (should): …".  A plan that
compares (`than`) has the congestion control to compare with as a second value of [tested, cc, …].
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.metrics import metric_names
from testctl.plan import Plan, load_plan
from testctl.plan.prioritise import covering
from testctl.plan.subset import counterparts, subset
from testctl.rules import rules
from testctl.system import checkout

EVERY = 0
"""In place of how many values together are in some point of each plan: every combination."""
LEVELS = ("MUST", "SHOULD", "should", "ought", "scenario")
"""How the text asks for a criterion to be evaluated; scenario: it names the conditions alone."""
OF = "RFC 9743"
NOT_COVERED = {
    "5.2.2": "real-time congestion controls (RFC 8836): their media codecs; a stream of small messages stands for them",
    "5.3.1": "why it differs from RFC 2914 is explained and not measured; which rules of TCP it breaks is",
    "6.2": "tunnels: no point has an encapsulation",
    "6.3": "wired paths: those of 6.1, which lose nothing but at the buffer",
    "7.2": "network circuit breakers (RFC 8084)",
    "7.4": "nodes with little power or memory; a slow link alone",
    "7.10": "multipath transport: a flow here has one path",
}
"""Sections of RFC 9743 that no plan states, or only in part."""

_ABOUT = re.compile(rf"(RFC \d+, \d+(?:\.\d+)*) \(({'|'.join(LEVELS)})\): (.+)")
_KEY = "tested.cc"


@dataclass(frozen=True)
class Criterion:
    """A criterion as a plan for one congestion control.

    key     the file's name without its end: "high_loss"
    source  "RFC 9743, 5.1.3"
    level   one of LEVELS: how the text asks for it
    about   the plan's sentence
    plan    named "high_loss-bbr", so that runs of other congestion controls are not its earlier ones
    tested  ids of the points that count; others are there to be compared with
    """

    key: str
    source: str
    level: str
    about: str
    plan: Plan
    tested: frozenset[str]

    @property
    def name(self) -> str:
        return self.key.replace("_", " ")


def plans() -> list[Path]:
    """Raises PlanError when there is none."""
    there = checkout.root() / "plans" / "certify"
    if not (found := sorted(there.glob("*.yaml"))):
        raise PlanError(f"{there}: want plans; there is none")
    return found


def chosen(given: Sequence[str]) -> list[Path]:
    """The files of these paths, or names of plans/certify/; all without any.  Raises PlanError for two of one name."""
    own = {path.stem: path for path in plans()}
    files = list(dict.fromkeys(own.get(name, Path(name)) for name in given)) or list(own.values())
    names = [file.stem for file in files]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PlanError(f"--plan: want plans of different names; two are named {twice}")
    return files


def load(files: Sequence[Path], cc: str, kernel: str | None, strength: int) -> list[Criterion]:
    """The criteria for one congestion control, in the order of their sections.  Raises PlanError."""
    wrong, criteria = [], []
    for file in files:
        try:
            criteria.append(_load(file, cc, kernel, strength))
        except PlanError as error:
            wrong.append(str(error))
    if wrong:
        raise PlanError("\n".join(wrong))
    return sorted(
        criteria, key=lambda c: (c.source.partition(",")[0] != OF, [*map(int, c.source.rpartition(" ")[2].split("."))])
    )


def _load(file: Path, cc: str, kernel: str | None, strength: int) -> Criterion:
    of_kernel = [f"hosts.kernel='{kernel}'"] if kernel is not None else []
    written = load_plan(file, metrics=metric_names(), rules=rules(), overrides=of_kernel)
    if not written.expectations:
        raise PlanError(f"{file}: want an expectation, which the criterion is judged by; there is none")
    match = _ABOUT.fullmatch(written.about)
    if match is None:
        raise PlanError(
            f"{file}: about: want 'RFC NUMBER, SECTION ({' or '.join(LEVELS)}): SENTENCE'; got {written.about!r}"
        )
    at = next((number for number, tuple_ in enumerate(written.assignments) if tuple_.key == _KEY), None)
    if at is None:
        raise PlanError(f"{file}: want a tuple [tested, cc, …] for the congestion control; there is none")
    than = {
        written.assignments[at].texts[e.bounds.than[at]] for e in written.expectations if e.bounds.than.get(at, -1) >= 0
    }
    values = [cc, *sorted(than - {cc})]
    plan = load_plan(file, metrics=metric_names(), rules=rules(), overrides=[*of_kernel, f"{_KEY}={','.join(values)}"])
    at, level = next(
        (number, tuple_.texts.index(cc)) for number, tuple_ in enumerate(plan.assignments) if tuple_.key == _KEY
    )
    only = {at: frozenset({level})}
    judged = [replace(e, when={**e.when, at: e.when.get(at, only[at]) & only[at]}) for e in plan.expectations]
    plan = replace(plan, name=f"{written.name}-{cc}", expectations=tuple(judged))
    own = [point for point in plan.points if point.levels[at] == level]
    some = covering([point.levels for point in own], strength) if strength else range(len(own))
    ids = frozenset(own[number].id for number in some)
    return Criterion(written.name, match[1], match[2], match[3], subset(plan, ids | counterparts(plan, ids)), ids)
