# SPDX-License-Identifier: Apache-2.0
"""A run and the one before it: exactly in the lab, else by statistics."""

from __future__ import annotations

from rich.console import Console

from testctl.compare.comparability import deterministic
from testctl.compare.exact import Comparison, compare_runs
from testctl.compare.statistical import Statistical, judge_runs
from testctl.compare.terminal import print_comparison, print_statistical
from testctl.results import Run


def changes(before: Run, now: Run) -> Comparison | Statistical:
    """What distinguishes two runs of one plan on one testbed."""
    return compare_runs(before, now) if deterministic(before) else judge_runs([before], [now])


def changed_points(comparison: Comparison | Statistical) -> set[str]:
    """Ids of the points of the later run that differ."""
    if isinstance(comparison, Comparison):
        return {difference.other for difference in comparison.differences}
    return {point.id for cell in comparison.cells if cell.differs for point in cell.cell.b}


def print_changes(comparison: Comparison | Statistical, console: Console, everything: bool = False) -> None:
    if isinstance(comparison, Comparison):
        print_comparison(comparison, console, everything)
    else:
        print_statistical(comparison, console, everything)
