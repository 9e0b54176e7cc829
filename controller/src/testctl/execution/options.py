# SPDX-License-Identifier: Apache-2.0
"""How a plan is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How a plan is run.

    out      the run's directory; None: a new one below results_dir
    resume   take finished points from earlier runs below results_dir
    runs     glob of the run names considered by `resume`
    keep_captures  whether each point keeps the pcap files that its hosts' packets were read from
    report_jobs  number of processes that draw the report, if more than jobs
    """

    results_dir: Path
    out: Path | None = None
    jobs: int = 1
    resume: bool = False
    runs: str = "*"
    keep_captures: bool = False
    report_jobs: int = 1
