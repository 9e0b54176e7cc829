# SPDX-License-Identifier: Apache-2.0
"""What distinguishes runs, and since when: exact in the lab, by statistics elsewhere."""

from testctl.compare.changes import change_points
from testctl.compare.opened import check_alike, deterministic, open_run
from testctl.compare.runs import Comparison, Difference, compare_runs
from testctl.compare.terminal import print_comparison

__all__ = [
    "Comparison",
    "Difference",
    "change_points",
    "check_alike",
    "compare_runs",
    "deterministic",
    "open_run",
    "print_comparison",
]
