# SPDX-License-Identifier: Apache-2.0
"""Finds a testbed by the value of --testbed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestctlError

from testctl.core.testbed_kind import NAMED, kind_of
from testctl.plan import Plan, Point
from testctl.testbeds.bed import Bed


def check_name(testbed: str) -> None:
    """Raises PlanError when it is neither a testbed's name nor an inventory's path."""
    if testbed not in NAMED and not Path(testbed).exists():
        raise PlanError(
            f"--testbed: want {', '.join(NAMED)} or an Ansible inventory; got {testbed!r}, which is not there"
        )


def check_kernels(plan: Plan) -> None:
    """Raises PlanError for a kernel that the plan names and that is neither built here nor can be.

    Nothing is built, and the one that runs where a plan names none is not asked for.
    """
    if not kind_of(plan.testbed).boots_kernels:
        return
    from testctl.lab import kernel as kernels
    from testctl.lab import source

    wrong = []
    for assignment in plan.assignments:
        named = zip(assignment.texts, assignment.places or [assignment.place] * len(assignment.texts), strict=True)
        for name, place in named if assignment.param == "kernel" else ():
            try:
                if kernels.by_name(name) is None:
                    source.find(name)
            except TestctlError as error:
                wrong.append(f"{place}: {error}")
    if wrong:
        raise PlanError("\n".join(wrong))


def places(testbed: str, plan: Plan) -> dict[str, str]:
    """The machine of a rack for each entity of a plan, without calling any agent; {} for other testbeds.

    Raises PlanError as a run would: a wrong inventory, or a plan that does not fit.
    """
    if testbed in NAMED:
        return {}
    from testctl.testbeds.inventory_file import read_rack
    from testctl.testbeds.placement import place

    return place(plan.topology, read_rack(Path(testbed))).to_json()


def choose(testbed: str, points: Sequence[Point], wall_limit_s: float | None = None, jobs: int = 1) -> Bed:
    """The testbed, ready for these points.  Raises PlanError, TestbedError."""
    kind = kind_of(testbed)
    if kind.max_jobs is not None and jobs > kind.max_jobs:
        raise PlanError(f"--testbed {testbed}: a rack runs one point at once; want --jobs {kind.max_jobs}, got {jobs}")
    if kind.boots_kernels:
        from testctl.testbeds.lab import LabTestbed

        return LabTestbed.for_points(points, wall_limit_s)
    if kind.local:
        from testctl.testbeds.netns import NetnsTestbed

        return NetnsTestbed.for_points(points, wall_limit_s)
    from testctl.testbeds.rack import InventoryTestbed

    return InventoryTestbed.for_points(points, Path(testbed))


def interrupted(bed: Bed) -> None:
    """Remove what killed workers left behind, on testbeds where that is necessary."""
    from testctl.testbeds import netns

    if isinstance(bed, netns.NetnsTestbed):
        netns.clean()
