# SPDX-License-Identifier: Apache-2.0
"""A nightly run in a sentence: how much of the plan was run, and the differences from the run before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestctlError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.results import RunPoint, layout
from testctl.results.reader import read_json

KEY = "nightly"
_GOOD = ("pass", "skip")


def night(run: Path, summary: Mapping[str, Any], points: Sequence[RunPoint]) -> dict[str, Any] | None:
    """{"since", "text"} of a nightly run, else None.  The run before is read from the same directory."""
    entry = summary.get(KEY)
    if not isinstance(entry, Mapping):
        return None
    since, left = str(entry.get("since") or ""), len(entry.get("not_run") or ())
    share = f"{len(points)} of {len(points) + left} points were run"
    if not since:
        return {"since": "", "text": f"the first nightly run of this plan here; {share}"}
    before = _before(run, since)
    if before is None:
        return {"since": since, "text": f"that run is not here to be compared with; {share}"}
    there = [(point, before[point.id]) for point in points if point.id in before]
    failed = sum(was["verdict"] in _GOOD and now.verdict not in _GOOD for now, was in there)
    parts = [f"{failed} new failure{'' if failed == 1 else 's'}", share]
    if kind_of(str(summary.get("testbed") or DEFAULT)).deterministic:  # else digests differ each time
        changed = sum(now.digest != was["digest"] for now, was in there)
        parts = [f"{changed} of {len(there)} changed, {parts[0]}", share]
    return {"since": since, "text": "; ".join(parts)}


def _before(run: Path, since: str) -> dict[str, dict[str, str]] | None:
    """{point: {"verdict", "digest"}} of the run of that name; None where it can't be read."""
    path = run.parent / since / layout.SUMMARY
    if not layout.is_name(since) or path.is_symlink() or path.parent.is_symlink() or not path.is_file():
        return None
    try:
        entries = read_json(path)["points"]
        return {str(point["id"]): {key: str(point.get(key, "")) for key in ("verdict", "digest")} for point in entries}
    except (TestctlError, KeyError, TypeError, AttributeError):
        return None
