# SPDX-License-Identifier: Apache-2.0
"""What changed in a run since the one before, and how much of its plan a nightly run was: the same words everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestctlError
from testctl_agent.spec.types import shown

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.core.words import counted
from testctl.report.factors import Factor, WithTuples, in_common
from testctl.results import RunPoint, layout
from testctl.results.reader import read_json

KEY = "nightly"
_GOOD = ("pass", "skip")
_ENDED = {"the clock": "the time ran out", "the estimate": "more were not expected to fit into the time"}
_MOST_NAMES = 20
_MOST_POINTS = 100
FIRST = "the first nightly run of this plan here"
NOT_HERE = "that run is not here to be compared with"

Results = Mapping[str, tuple[str, str]]
"""{point: (verdict, digest)}"""


def changed(before: Results, now: Results, exact: bool, points: Sequence[WithTuples]) -> dict[str, Any]:
    """The differences between two runs of a plan: {"text", "worse", "points"}, these by their ids.

    exact   digests repeat on both runs' testbeds; else they differ each time, and are not compared
    points  in the second run
    text    a sentence, with the values that the points share which differ
    worse   whether points fail anew
    """
    both = {point: (before[point], result) for point, result in now.items() if point in before}
    verdicts = [(was in _GOOD, became in _GOOD) for (was, _), (became, _) in both.values() if was != became]
    failed, passed = verdicts.count((True, False)), verdicts.count((False, True))
    other = len(verdicts) - failed - passed
    digests = sum(was != became for (_, was), (_, became) in both.values()) if exact else 0
    more, less = len(now) - len(both), len(before) - len(both)
    parts = [
        f"{failed} new failure{'' if failed == 1 else 's'}" if failed else "",
        f"{counted(passed, 'point')} no longer fail{'s' if passed == 1 else ''}" if passed else "",
        f"{counted(other, 'point')} with another verdict" if other else "",
        f"{digests} of {counted(len(both), 'point')} with another digest" if digests else "",
    ]
    if not any(parts):
        there = f" in the {counted(len(both), 'point')} of both" if more or less else ""
        parts = [("no change" if exact else "no other verdict") + there if both else "no point of the run before"]
    parts += [f"{counted(more, 'point')} more" if more else "", f"{counted(less, 'point')} less" if less else ""]
    differ = [point for point, (was, became) in both.items() if (was != became if exact else was[0] != became[0])]
    shared = in_common([point for point in points if point.id in both], differ)
    text = ", ".join(filter(None, parts)) + (f"; different: {shared}" if shared else "")
    return {"text": text, "worse": bool(failed), "points": differ[:_MOST_POINTS]}


def share(entry: object, points: int) -> str:
    """How much of its plan a nightly run of that many points was, by its entry of the summary; "" of another run."""
    if not isinstance(entry, Mapping):
        return ""
    not_run = entry.get("not_run")
    left = len(not_run) if isinstance(not_run, list) else 0
    why = _ENDED.get(str(entry.get("ended_by")), "")
    return f"{points} of {points + left} points were run" + (f": {why}" if left and why else "")


def night(
    run: Path, summary: Mapping[str, Any], points: Sequence[RunPoint], varying: Sequence[Factor]
) -> dict[str, Any] | None:
    """{"since", "share", "less"} and what changed() says of a nightly run, else None.

    less  names of points that it did not run and the run before did

    The run before is read from the same directory.
    """
    entry = summary.get(KEY)
    if not isinstance(entry, Mapping):
        return None
    since = str(entry.get("since") or "")
    about = {"since": since, "worse": False, "points": [], "share": share(entry, len(points)), "less": []}
    if not since:
        return about | {"text": FIRST}
    before = _before(run, since)
    if before is None:
        return about | {"text": NOT_HERE}
    now = {point.id: (point.verdict, point.digest) for point in points}
    less = [each for each in entry.get("not_run") or () if each["id"] in before]
    exact = kind_of(str(summary.get("testbed") or DEFAULT)).deterministic
    return (
        about | changed(before, now, exact, points) | {"less": [_name(point, varying) for point in less[:_MOST_NAMES]]}
    )


def _name(point: Mapping[str, Any], varying: Sequence[Factor]) -> str:
    """A point that was not run by what distinguishes those that were, or its id."""
    values = {f"{entity}.{parameter}": shown(value) for entity, parameter, value in point["tuples"]}
    return ", ".join(f"{f.label} {values[f.key]}" for f in varying if f.key in values) or str(point["id"])


def _before(run: Path, since: str) -> dict[str, tuple[str, str]] | None:
    """{point: (verdict, digest)} of the run of that name; None where it can't be read."""
    path = run.parent / since / layout.SUMMARY
    if not layout.is_name(since) or path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return None
    try:
        entries = read_json(path)["points"]
        return {str(point["id"]): (str(point["verdict"]), str(point.get("digest", ""))) for point in entries}
    except (TestctlError, KeyError, TypeError, AttributeError):
        return None
