# SPDX-License-Identifier: Apache-2.0
"""Runs that a command makes of whole plans on this machine, for what it prints itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from testctl.testbeds.choose import find
from testctl.testbeds.testbed import Request

if TYPE_CHECKING:
    from testctl.execution.options import Options
    from testctl.execution.pool import LocalPool
    from testctl.lab.kernel import Kernel
    from testctl.plan import Plan
    from testctl.results import Run


def made_run(plan: Plan, options: Options, pool: LocalPool, kernel: Kernel | None = None) -> Run:
    """kernel: the one of all points.  With options.resume, a finished run that has all of them is not made again."""
    from testctl.execution.finished_run import finished
    from testctl.execution.run import run_plan
    from testctl.report import Progress

    ready = find(plan.testbed).ready(plan.points, Request(None, pool.jobs, kernel=kernel, commands=True))
    if options.resume and (there := finished(plan, ready, options)):
        return there
    return run_plan(plan, ready, options, Progress(len(plan.points), Console(stderr=True)), pool=pool)
