# SPDX-License-Identifier: Apache-2.0
"""Finds a testbed by the value of --testbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testctl_agent.spec.errors import PlanError, TestctlError

from testctl.core.testbed_kind import NAMED, kind_of
from testctl.plan import Assignment, Plan, Point
from testctl.testbeds.bed import Bed

if TYPE_CHECKING:
    from testctl.lab.kernel import Kernel


def check_name(testbed: str) -> None:
    """Raises PlanError when it is neither a testbed's name nor an inventory's path."""
    if testbed not in NAMED and not Path(testbed).exists():
        raise PlanError(
            f"--testbed: want {', '.join(NAMED)} or an Ansible inventory; got {testbed!r}, which is not there"
        )


def check_kernels(plan: Plan) -> None:
    """Raises PlanError for a kernel that the plan names and that is neither built here nor can be.

    Also for a sysctl that a kernel has not, and for a congestion control that none has, where it is known what they
    have: that of kernels that have run before.
    Nothing is built or booted, and the kernel that runs where a plan names none need not be there.
    """
    if not kind_of(plan.testbed).boots_kernels:
        return
    _check_names(plan)
    _check_sysctls(plan)
    _check_ccs(plan)


def _check_sysctls(plan: Plan) -> None:
    from testctl.lab.built import built
    from testctl.lab.kernel_lists import listed
    from testctl.lab.sysctls import refused

    wrong: dict[str, str] = {}
    for name, points in _by_kernel(plan).items():
        kernel = built(name)
        for setting, why in refused(points, kernel, listed).items() if kernel else ():
            wrong.setdefault(_place(plan, *setting), why)
    if wrong:
        raise PlanError("\n".join(f"{place}: {text}" for place, text in wrong.items()))


def _place(plan: Plan, host: str, name: str, value: object) -> str:
    """Where a plan says that a host has this value of a parameter."""
    for assignment in plan.assignments:
        for target in assignment.targets:
            if (target.entity, target.param) == (host, name) and value in target.values:
                return f"{(assignment.places or {0: assignment.place})[target.values.index(value)]}"
    return f"host {host}, {name}"


def _check_ccs(plan: Plan) -> None:
    """No error as long as one of the plan's kernels may have it, unless a kernel is to be built again for it."""
    from testctl.lab.built import built
    from testctl.lab.kernel_ccs import ccs_of, unbuilt, unknown
    from testctl.lab.kernel_lists import CCS, listed

    by_kernel = _by_kernel(plan)
    found = {name: built(name) for name in by_kernel}
    wrong: dict[str, str] = {}
    for name, points in by_kernel.items():
        wrong |= unbuilt(name, ccs_of(points)) if found[name] else {}
    lists = {name: listed(kernel, CCS) if kernel else frozenset() for name, kernel in found.items()}
    if all(lists.values()):
        wrong = unknown(ccs_of(plan.points), lists) | wrong
    said = [
        f"{place}: {wrong[cc]}"
        for assignment in plan.assignments
        for cc, place in _values(assignment)
        if assignment.param == "cc" and cc in wrong
    ]
    if wrong:
        raise PlanError("\n".join(said or wrong.values()))


def _by_kernel(plan: Plan) -> dict[str, list[Point]]:
    from testctl.testbeds.point_spec import kernel_of

    found: dict[str, list[Point]] = {}
    for point in plan.points:
        found.setdefault(kernel_of(point), []).append(point)
    return found


def _values(assignment: Assignment) -> Iterator[tuple[str, object]]:
    """Each value of a tuple as it is written, and where it stands."""
    yield from zip(assignment.texts, assignment.places or [assignment.place] * len(assignment.texts), strict=True)


def _check_names(plan: Plan) -> None:
    from testctl.lab import built, source
    from testctl.lab import kernel as kernels

    wrong = []
    for assignment in plan.assignments:
        for name, place in _values(assignment) if assignment.param == "kernel" else ():
            try:
                if kernels.by_name(name) is None:
                    source.find(name)
            except TestctlError as error:
                wrong.append(f"{place}: {error}; built are: {', '.join(built.names()) or 'none'}")
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


def choose(
    testbed: str,
    points: Sequence[Point],
    wall_limit_s: float | None = None,
    jobs: int = 1,
    wait_s: float = 0.0,
    *,
    commands: bool = False,
) -> Bed:
    """The testbed, ready for these points.

    wait_s    for a rack that others use
    commands  whether points may start programs of their plan: yes for a plan that the user names, for that of a run,
              which may be another person's, only if the user says so

    Raises PlanError, TestbedError.
    """
    kind = kind_of(testbed)
    if wait_s and kind.local:
        raise PlanError(f"--wait: want an inventory, whose machines may be leased to others; got --testbed {testbed}")
    if kind.max_jobs is not None and jobs > kind.max_jobs:
        raise PlanError(f"--testbed {testbed}: a rack runs one point at once; want --jobs {kind.max_jobs}, got {jobs}")
    if kind.boots_kernels:
        from testctl.testbeds.lab import LabTestbed

        return LabTestbed.for_points(points, wall_limit_s, commands)
    if kind.local:
        from testctl.testbeds.netns import NetnsTestbed

        return NetnsTestbed.for_points(points, wall_limit_s, commands)
    from testctl.testbeds.rack import InventoryTestbed

    return InventoryTestbed.for_points(points, Path(testbed), wait_s)


def on_kernel(
    points: Sequence[Point], kernel: Kernel, wall_limit_s: float | None = None, *, commands: bool = False
) -> Bed:
    """The lab on one kernel, whichever the points name.  commands: as of choose().  Raises PlanError, TestbedError."""
    from testctl.testbeds.lab import LabTestbed

    return replace(LabTestbed.all_on(points, kernel, commands), wall_limit_s=wall_limit_s)


def interrupted(bed: Bed) -> None:
    """Remove what killed workers left behind, on testbeds where that is necessary."""
    from testctl.testbeds import netns

    if isinstance(bed, netns.NetnsTestbed):
        netns.clean()
