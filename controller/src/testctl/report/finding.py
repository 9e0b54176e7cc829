# SPDX-License-Identifier: Apache-2.0
"""What a run found, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from testctl.report.expectations import Judged
from testctl.report.failures import shared_by
from testctl.results import RunPoint

_OTHERS = {"invalid": "invalid", "broken": "broken", "skip": "skipped", "not judged yet": "not judged yet"}


def finding(points: Sequence[RunPoint], expected: Sequence[Judged]) -> str:
    """Such as "all 60 points pass", or "12 of 48 fail 'the link is used': 10 of 12 with rate=100mbit; worst
    saturation 0.42, want ≥ 0.9"; "" without points."""
    failed = [point for point in points if point.verdict == "fail"]
    others = [f"{count} {word}" for verdict, word in _OTHERS.items() if (count := _count(points, verdict))]
    if not failed:
        passed, total = _count(points, "pass"), len(points)
        if not total:
            return ""
        every = f"all {total} points pass" if total > 1 else "its point passes"
        return every if passed == total else ", ".join([f"{passed} of {total} points pass", *others])
    text = f"{len(failed)} of {len(points)} fail" if len(points) > 1 else "its point fails"
    if others:
        text += f" ({', '.join(others)})"
    ids = {point.id for point in failed}
    most = max((one for one in expected if one.verdict == "fail"), key=lambda one: len(ids & one.points), default=None)
    if most is None:
        return f"{text}: {failed[0].reason}" if len(failed) == 1 and failed[0].reason else text
    of = ids & most.points
    if len(of) < len(failed):
        text += f", {len(of)} of them"
    text += f" {most.name!r}"
    shared = shared_by(points, "fail")
    text += f": {shared[0].text}" if shared else ""
    worst = most.worst([point for point in failed if point.id in of])
    if not worst:
        return text
    return f"{text}; worst {most.metric} {worst}" + (f", want {most.bound}" if most.bound else "")


def _count(points: Sequence[RunPoint], verdict: str) -> int:
    return sum(point.verdict == verdict for point in points)
