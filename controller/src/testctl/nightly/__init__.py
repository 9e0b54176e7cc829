# SPDX-License-Identifier: Apache-2.0
"""Runs a plan within a time budget, the most valuable points first, and reports changes since the last run."""

from testctl.nightly.budget import TimeBudget, presumed
from testctl.nightly.earlier import KEY, LastRun, alike, entry_of, interrupted, last_run, nightly_runs
from testctl.nightly.schedule import Schedule, like, schedule

__all__ = [
    "KEY",
    "LastRun",
    "Schedule",
    "TimeBudget",
    "alike",
    "entry_of",
    "interrupted",
    "last_run",
    "like",
    "nightly_runs",
    "presumed",
    "schedule",
]
