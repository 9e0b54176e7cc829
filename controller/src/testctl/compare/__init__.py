# SPDX-License-Identifier: Apache-2.0
"""Comparison of runs and histories: exact in the lab, statistical on other testbeds."""

from testctl.compare.comparability import check_alike, deterministic, open_run
from testctl.compare.exact import Comparison, compare_runs
from testctl.compare.files import uri_of, write_verdicts
from testctl.compare.run_verdicts import of_run
from testctl.compare.statistical import Statistical, judge_runs
from testctl.compare.stats.change_points import change_points
from testctl.compare.successive import changed_points, changes, print_changes
from testctl.compare.terminal import print_comparison, print_statistical
from testctl.compare.verdicts import verdicts_of

__all__ = [
    "Comparison",
    "Statistical",
    "change_points",
    "changed_points",
    "changes",
    "check_alike",
    "compare_runs",
    "deterministic",
    "judge_runs",
    "of_run",
    "open_run",
    "print_changes",
    "print_comparison",
    "print_statistical",
    "uri_of",
    "verdicts_of",
    "write_verdicts",
]
