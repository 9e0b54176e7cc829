# SPDX-License-Identifier: Apache-2.0
"""Files of a run's directory, names of runs, and the digest of a run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from testctl_agent.spec.errors import PlanError

IN_PROGRESS = ".in-progress"
LATEST = "latest"
CHECK = "-aa"
"""Suffix of the directory of an A/A test."""

PLAN = "plan.yaml"
EXPANDED = "plan.expanded.json"
TOPOLOGY = "topology.yaml"
"""The topology that a plan names by its path."""
TRACES = "traces.json"
"""Files of values that a plan names by their paths, such as traces of links: path -> value."""
VERSIONS = "versions.json"
SUMMARY = "summary.json"
REPORT = "report.html"
POINTS = "points"
FIGURES = "figures"
PAPER = "paper.png"
SCORECARD = "scorecard"
"""Directory of a scorecard: scorecard.json, .html and .png."""
SCORECARD_PAGE, SCORECARD_DATA = f"{SCORECARD}.html", f"{SCORECARD}.json"

POINT = "point.json"
OUTCOME = "outcome.json"
METRICS = "metrics.json"
VERDICT = "verdict.json"
RECORDS = "records.json"
PACKETS = "packets.parquet"
TCP_INFO = "tcp_info.parquet"
TCP_EVENTS = "tcp_events.parquet"
REQUESTS = "requests.parquet"
STALLS = "stalls.parquet"
FATES = "fates.json"
VIOLATIONS = "violations.json"
ANSWERS = "answers.json"
"""What came of the plan's conditions over the trace."""
CAPTURES = "captures"
COVERAGE = "kernel.coverage"
"""What of its kernel a point executed (lab/boot/coverage.py); of one of several, behind the name of its first host or
switch and a dot."""
TRACEBACK = "traceback.txt"
"""Traceback of a point that ended in a bug."""

VERDICTS = ("pass", "fail", "invalid", "skip", "broken")
"""Every verdict, in the order in which they are counted and shown."""
UNJUDGED = "not judged yet"
"""Shown instead of a verdict that depends on points that are still missing."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


def run_name(plan: str, now: datetime | None = None, number: int = 1) -> str:
    """`<UTC time>-<plan>`, such as 20260131T120500Z-dctcp_htb, or 20260131T120500Z.02-dctcp_htb for number 2."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}{f'.{number:02}' if number > 1 else ''}-{safe_name(plan, 'plan')}"


def safe_name(name: str, what: str) -> str:
    """The name, if it can be a file's name everywhere; else PlanError."""
    if not _NAME.fullmatch(name):
        raise PlanError(f"{what}: want a name of letters, digits, '.', '_', '+' and '-' (at most 100); got {name!r}")
    return name


def is_name(name: str) -> bool:
    """Whether a run or a point can have that name."""
    return _NAME.fullmatch(name) is not None


def same_names(plans: Sequence[Path]) -> list[str]:
    """A sentence for each plan whose runs would be taken for another plan's."""
    first: dict[str, Path] = {}
    twice = [(plan, other) for plan in plans if (other := first.setdefault(plan.stem, plan)) is not plan]
    return [f"{plan}: want plans of different names; {other} is named {plan.stem} too" for plan, other in twice]


def run_digest(points: Iterable[tuple[str, str]]) -> str:
    """Digest of a run: sha256 over its (point id, digest) pairs, sorted, one a line."""
    whole = hashlib.sha256()
    for point_id, digest in sorted(points):
        whole.update(f"{point_id} {digest}\n".encode())
    return whole.hexdigest()


def verdict_shown(run: Path, verdict: str) -> str:
    """A point's verdict as shown: in a run in progress a point may have failed, but none has passed yet."""
    return UNJUDGED if verdict == "pass" and run.name.endswith(IN_PROGRESS) else verdict


def point_dir(run: Path, point_id: str) -> Path:
    return run / POINTS / safe_name(point_id, "point id")
