# SPDX-License-Identifier: Apache-2.0
"""The result of a run, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from testctl.core.words import counted
from testctl.report.expectations import Judged
from testctl.report.failures import rules_broken, shared_by
from testctl.results import RunPoint

_OTHERS = {"invalid": "invalid", "broken": "broken", "skip": "skipped", "not judged yet": "not judged yet"}


def finding(points: Sequence[RunPoint], expected: Sequence[Judged]) -> str:
    """Such as "all 60 points pass", or '12 of 48 fail "the link is used": 10 of 12 with rate=100mbit; worst
    saturation 0.42, want ≥ 0.9; 1 broken'; "" without points."""
    total, passed = len(points), _count(points, "pass")
    if not total:
        return ""
    if passed == total:
        return {1: "its point passes", 2: "both points pass"}.get(total, f"all {total} points pass")
    failed = [point for point in points if point.verdict == "fail"]
    if failed:
        first = _failed(points, failed, expected)
    else:
        first = f"{passed} of {counted(total, 'point')} pass" if passed else ""
    return "; ".join(filter(None, [first, *_others(points)]))


def _failed(points: Sequence[RunPoint], failed: Sequence[RunPoint], expected: Sequence[Judged]) -> str:
    """The failures, by the expectation that most of them fail."""
    text = f"{len(failed)} of {len(points)} fail" if len(points) > 1 else "its point fails"
    ids = {point.id for point in failed}
    missed = [expectation for expectation in expected if expectation.verdict == "fail"]
    most = max(missed, key=lambda expectation: len(ids & expectation.points), default=None)
    if most is None:
        if len(failed) == 1 and failed[0].reason:
            return f"{text}: {failed[0].reason}"
        for rule, count in rules_broken(failed).most_common(1):
            text += f", {count} of them break" if count < len(failed) else " and break"
            text += f" the rule {rule}"
        shared = shared_by(points, "fail")
        return text + (f": {shared[0].text}" if shared else "")
    of = [point for point in failed if point.id in most.points]
    text += f'{f", {len(of)} of them" if len(of) < len(failed) else ""} "{most.name}"'
    shared, worst = shared_by(points, "fail"), most.worst(of)
    text += f": {shared[0].text}" if shared else ""
    text += f"; worst {most.metric} {worst}" if worst else ""
    return text + (f", want {most.bound}" if worst and most.bound else "")


def _others(points: Sequence[RunPoint]) -> list[str]:
    return [f"{count} {word}" for verdict, word in _OTHERS.items() if (count := _count(points, verdict))]


def _count(points: Sequence[RunPoint], verdict: str) -> int:
    return sum(point.verdict == verdict for point in points)
