# SPDX-License-Identifier: Apache-2.0
"""What the points that did not pass have in common, a sentence for each verdict; failures before other points."""

from __future__ import annotations

from collections.abc import Sequence

from testctl.plan import failures
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


def failures_first(points: Sequence[RunPoint]) -> list[RunPoint]:
    """The points in the order of their verdicts, else as they are."""
    rank = {verdict: index for index, verdict in enumerate(ORDER)}
    return sorted(points, key=lambda point: rank.get(point.verdict, len(rank)))


def failure_lines(points: Sequence[RunPoint]) -> list[tuple[str, str]]:
    """(verdict, sentence) of verdicts that several points have: "22 of 60 points fail: all 20 with delay=30ms; 2 more".

    Points that did not get as far as a verdict are not among those that it is compared with.
    """
    swept = [factor for factor in factors(points) if factor.label]
    found = []
    for verdict, (verb, among) in _AMONG.items():
        there = [point for point in points if point.verdict in among]
        failed = [point.verdict == verdict for point in there]
        if sum(failed) < failures.LEAST:
            continue
        shared = failures.in_words([{one.label: one.of[point.id] for one in swept} for point in there], failed)
        count = f"all {len(there)}" if all(failed) else f"{sum(failed)} of {len(there)}"
        found.append((verdict, f"{count} points {verb}" + (f": {shared}" if shared else "")))
    return found
