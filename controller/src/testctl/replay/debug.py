# SPDX-License-Identifier: Apache-2.0
"""A replay in gdb: the lab's kernel stops at the user's breakpoints; records are compared if it runs to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.lab import debugger
from testctl.lab.kernel import Kernel
from testctl.replay.command import lab_for
from testctl.replay.variants import with_symbols
from testctl.results import Run
from testctl.results.provenance import plan_of, point_of
from testctl.system.temporary import temporary


@dataclass(frozen=True)
class Debugged:
    """kernel: that ran; same: whether the records equal those of the run, None if it did not run to its end."""

    kernel: Kernel
    same: bool | None


def debug(run: Run, start: str, scripts: Sequence[Path], commands: bool) -> Debugged:
    """Run a point of a finished run in gdb, without keeping results.

    The kernel is the variant `trace` of the point's, with symbols, if it is built.

    Raises PlanError for a point that can't be replayed, TestbedError when gdb or its kernel is missing.
    """
    debugger.gdb()
    files = debugger.resolved(scripts)
    recorded = run.point(start)
    bed = str(run.summary.get("testbed", DEFAULT))
    if not kind_of(bed).deterministic:
        raise PlanError(f"{run.path}: ran on {bed}; want a run in the lab: its kernel is a process that gdb starts")
    point = point_of(run, plan_of(run), recorded.id)
    lab = lab_for(recorded, point, commands)
    spec = lab.spec(point)
    if spec.parts:
        raise PlanError(f"{run.path}: point {point.id} has {len(spec.parts)} kernels; want one, which gdb starts")
    kernel = with_symbols(lab.kernels[spec.kernel])
    with temporary("testctl-gdb-") as where:
        outcome = debugger.run_in_gdb(spec, kernel.binary, where, files, lab.program, lab.boot)
        if outcome is None or outcome.error or outcome.skip:
            return Debugged(kernel, None)
        from testctl.records import make_records

        return Debugged(kernel, make_records(spec, outcome, where).digest() == recorded.digest)
