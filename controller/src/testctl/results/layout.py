# SPDX-License-Identifier: Apache-2.0
"""What lies where in a run's directory, how a run is named, and its digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from testctl_agent.spec.errors import PlanError

IN_PROGRESS = ".in-progress"
LATEST = "latest"
CHECK = "-aa"
"""What the name of an A/A check's directory ends with."""

PLAN = "plan.yaml"
EXPANDED = "plan.expanded.json"
TOPOLOGY = "topology.yaml"
"""Of a plan that names a topology by its path."""
TRACES = "traces.json"
"""Of a plan that names files of values by their paths, such as traces of links: path -> value."""
VERSIONS = "versions.json"
SUMMARY = "summary.json"
REPORT = "report.html"
POINTS = "points"
FIGURES = "figures"
PAPER = "paper.png"
SCORECARD = "scorecard"
"""Of papers: scorecard.json, .html and .png, in a directory of their own."""

POINT = "point.json"
OUTCOME = "outcome.json"
METRICS = "metrics.json"
VERDICT = "verdict.json"
PACKETS = "packets.parquet"
TCP_INFO = "tcp_info.parquet"
TCP_EVENTS = "tcp_events.parquet"
REQUESTS = "requests.parquet"
STALLS = "stalls.parquet"
FATES = "fates.json"
CAPTURES = "captures"
TRACEBACK = "traceback.txt"
"""Of a point that ended in a bug."""

VERDICTS = ("pass", "fail", "invalid", "skip", "broken")
"""Every verdict, in the order in which they are counted and shown."""
UNJUDGED = "not judged yet"
"""What is shown in place of a verdict while points are missing on which it depends whether the point passes."""

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


def run_digest(points: Iterable[tuple[str, str]]) -> str:
    """Digest of a run: sha256 over its (point id, digest) pairs, sorted, one a line."""
    whole = hashlib.sha256()
    for point_id, digest in sorted(points):
        whole.update(f"{point_id} {digest}\n".encode())
    return whole.hexdigest()


def capture_name(host: str) -> str:
    """The file of a host's capture."""
    return f"{host}.pcap"


def verdict_shown(run: Path, verdict: str) -> str:
    """A point's verdict as it is shown: in a run in progress a point may have failed, and none has passed yet."""
    return UNJUDGED if verdict == "pass" and run.name.endswith(IN_PROGRESS) else verdict


def point_dir(run: Path, point_id: str) -> Path:
    """The directory of a point in a run."""
    return run / POINTS / safe_name(point_id, "point id")
