# SPDX-License-Identifier: Apache-2.0
"""The results directory: written atomically, never changed, readable with SQL."""

from testctl.results.atomic import check_place
from testctl.results.layout import IN_PROGRESS, VERDICTS, run_digest, run_name
from testctl.results.point import PointResult, set_verdict, write_point
from testctl.results.reader import Run, RunPoint, load_point, load_run
from testctl.results.sql import connect
from testctl.results.summary import build_summary
from testctl.results.versions import collect_versions, git_commit
from testctl.results.writer import RunWriter

__all__ = [
    "IN_PROGRESS",
    "VERDICTS",
    "PointResult",
    "Run",
    "RunPoint",
    "RunWriter",
    "build_summary",
    "check_place",
    "collect_versions",
    "connect",
    "git_commit",
    "load_point",
    "load_run",
    "run_digest",
    "run_name",
    "set_verdict",
    "write_point",
]
