# SPDX-License-Identifier: Apache-2.0
"""--source of the commands that run plans: the kernel of a tree of the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from testctl_agent.spec.errors import PlanError

from testctl.cli.interrupt import INTERRUPTED, interruptible

if TYPE_CHECKING:
    from testctl.lab.kernel import Kernel
    from testctl.plan import Plan
    from testctl.results import Run

MAX_POINTS = 10_000
METAVAR = "DIR[@REV]"
HELP = "run on the kernel of this tree, or of a git revision of it; what changed is built first"


def built(text: str) -> Kernel:
    """The kernel of DIR[@REV], with lines about its build.  Raises PlanError, TestbedError."""
    from testctl.cli.labs import _progress
    from testctl.lab.tree_kernel import build_tree
    from testctl.system.text import first_of

    with _progress() as progress:
        kernel, changed = build_tree(text, progress, os.cpu_count() or 1)
    release = kernel.directory / "release"
    version = release.read_text(encoding="utf-8").strip() if release.is_file() else "?"
    what = "" if changed is None else f"; changed since the last build: {first_of(changed, 8) or 'nothing'}"
    print(f"kernel of {text}: {version}, {kernel.binary}{what}", file=sys.stderr)
    return kernel


def run_both(file: Path, sources: Sequence[str], results: Path) -> tuple[Path, Path]:
    """Run a plan on the kernels of two trees, or revisions; the directories of the runs.

    Both kernels are built before anything is run.  Raises PlanError, TestbedError.
    """
    from testctl.cli.runs import load

    if len(sources) != 2:
        raise PlanError(f"--source: want it twice, for the two kernels to compare; got {len(sources)}")
    kernels = [built(source) for source in sources]
    if kernels[0] == kernels[1]:
        raise PlanError(f"--source: want two kernels; {sources[0]} and {sources[1]} are the same")
    plan = load(file, "lab", None, kernels[0].name, MAX_POINTS)
    with interruptible():
        try:
            first, second = (_run_on(plan, kernel, results) for kernel in kernels)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
    return first.path, second.path


def _run_on(plan: Plan, kernel: Kernel, results: Path) -> Run:
    """A run of a plan whose every point is on this kernel."""
    from testctl.execution.options import Options
    from testctl.execution.pool import LocalPool
    from testctl.execution.run import run_plan
    from testctl.report import Progress
    from testctl.testbeds.choose import on_kernel

    progress = Progress(len(plan.points), Console(stderr=True))
    bed = on_kernel(plan.points, kernel, commands=True)
    return run_plan(plan, bed, Options(results), progress, pool=LocalPool(1))
