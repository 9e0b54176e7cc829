# SPDX-License-Identifier: Apache-2.0
"""What the points that did not pass have in common, a sentence for each verdict; failures before other points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from testctl.plan import failures
from testctl.plan.failures import Shared
from testctl.report.expectations import Judged
from testctl.report.factors import factors
from testctl.results import RunPoint
from testctl.results.layout import UNJUDGED

ORDER = ("fail", "invalid", "broken", "skip", UNJUDGED, "pass")
"""Verdicts in the order of tables."""

_AMONG = {
    "fail": ("fail", ("pass", UNJUDGED, "fail")),
    "invalid": ("are invalid", ("pass", UNJUDGED, "fail", "invalid")),
    "broken": ("are broken", ("pass", UNJUDGED, "fail", "invalid", "broken")),
}
"""Verdict: its verb, and the verdicts of points that got as far."""


_NAMED = 3
"""Points that share nothing: up to that many have a row each."""


def failures_first(points: Sequence[RunPoint]) -> list[RunPoint]:
    """The points in the order of their verdicts, else as they are."""
    rank = {verdict: index for index, verdict in enumerate(ORDER)}
    return sorted(points, key=lambda point: rank.get(point.verdict, len(rank)))


def failure_lines(points: Sequence[RunPoint]) -> list[tuple[str, str]]:
    """(verdict, sentence) of verdicts that several points have: "22 of 60 points fail: all 20 with delay=30ms; 2 more".

    Points that did not get as far as a verdict are not among those that it is compared with.
    """
    found = []
    for verdict, (verb, _) in _AMONG.items():
        values, failed = _compared(points, verdict)
        if sum(failed) < failures.LEAST:
            continue
        shared = failures.in_words(values, failed)
        found.append((verdict, f"{_count(failed)} points {verb}" + (f": {shared}" if shared else "")))
    return found


def failure_tables(points: Sequence[RunPoint], expected: Sequence[Judged]) -> list[dict[str, Any]]:
    """What failure_lines() says, for a table: {"verdict", "count", "rows": [{"share", "where", "worst"}], "more"}.

    where  [(factor's label, value)], which all points of the row have
    worst  of the expectations that these points fail, each "metric value"; and the rules that they break
    """
    tables = []
    for verdict in _AMONG:
        values, failed = _compared(points, verdict)
        shared = failures.shared_values(values, failed)
        if sum(failed) < failures.LEAST or not shared:
            continue
        left = [point for point in points if point.verdict == verdict]
        of = {factor.label: factor.of for factor in factors(points)}
        rows = []
        for group in shared:
            members = [p for p in left if all(of[label][p.id] == value for label, value in group.condition)]
            left = [point for point in left if point not in members]
            rows.append({"share": _count_of(group), "where": [list(pair) for pair in group.condition],
                         "worst": _worst(members, expected)})  # fmt: skip
        if len(left) <= _NAMED:
            rows += [{"share": "1", "where": [[label, column[p.id]] for label, column in of.items()],
                      "worst": _worst([p], expected)} for p in left]  # fmt: skip
            left = []
        tables.append({"verdict": verdict, "count": _count(failed), "rows": rows, "more": len(left)})
    return tables


def shared_by(points: Sequence[RunPoint], verdict: str) -> list[Shared]:
    """What distinguishes the points with a verdict from those that got as far."""
    return failures.shared_values(*_compared(points, verdict))


def rules_broken(points: Sequence[RunPoint]) -> Counter[str]:
    """How many of these points fail by each rule."""
    return Counter(rule for point in points for rule in set(re.findall(r"the rule (\S+) was broken", point.reason)))


def telling_labels(points: Sequence[RunPoint]) -> list[str]:
    """Labels of factors: those first that failing points share, most telling first; then those of most values."""
    named = [label for verdict in _AMONG for group in shared_by(points, verdict) for label, _ in group.condition]
    others = sorted(factors(points), key=lambda factor: -len(factor.values))
    return list(dict.fromkeys([*named, *(factor.label for factor in others)]))


def _compared(points: Sequence[RunPoint], verdict: str) -> tuple[list[dict[str, str]], list[bool]]:
    """Values of the points that got as far as a verdict, and which of them have it."""
    varying = factors(points)
    there = [point for point in points if point.verdict in _AMONG[verdict][1]]
    values = [{factor.label: factor.of[point.id] for factor in varying} for point in there]
    return values, [point.verdict == verdict for point in there]


def _worst(points: Sequence[RunPoint], expected: Sequence[Judged]) -> str:
    texts = []
    for expectation in expected:
        failing = [point for point in points if expectation.verdict == "fail" and point.id in expectation.points]
        if failing and (value := expectation.worst(failing)):
            texts.append(f"{expectation.metric} {value}" + (f", want {expectation.bound}" if expectation.bound else ""))
    texts += [f"rule {rule} broken" for rule, _ in rules_broken(points).most_common()]
    return "; ".join(dict.fromkeys(texts))


def _count(failed: Sequence[bool]) -> str:
    return f"all {len(failed)}" if all(failed) else f"{sum(failed)} of {len(failed)}"


def _count_of(group: Shared) -> str:
    return f"all {group.points}" if group.failed == group.points else f"{group.failed} of {group.points}"
