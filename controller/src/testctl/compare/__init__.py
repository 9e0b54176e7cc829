# SPDX-License-Identifier: Apache-2.0
"""What distinguishes runs, and since when: exact in the lab, by statistics elsewhere."""

from testctl.compare.changes import change_points
from testctl.compare.runs import Comparison, Difference, compare_runs, print_comparison

__all__ = ["Comparison", "Difference", "change_points", "compare_runs", "print_comparison"]
