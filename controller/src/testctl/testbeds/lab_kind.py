# SPDX-License-Identifier: Apache-2.0
"""The testbed `lab`, as the command line names it."""

from __future__ import annotations

from collections.abc import Sequence

from testctl_agent.spec.errors import PlanError, TestbedError, TestctlError

from testctl.lab import built, shared_time, source
from testctl.lab import kernel as kernels
from testctl.lab.kernel_ccs import ccs_of, unbuilt, unknown
from testctl.lab.kernel_lists import CCS, listed
from testctl.lab.sysctls import refused
from testctl.plan import Plan, Point
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.network import BRIDGED
from testctl.testbeds.point_spec import backend_of, kernels_of, on_kernel, own_programs, parts_of
from testctl.testbeds.ready import ReadyTestbed
from testctl.testbeds.testbed import Request, Testbed


def testbed(word: str) -> Testbed:
    return Lab()


class Lab(Testbed):
    """Boots the kernels that were built here."""

    def check(self, plan: Plan) -> None:
        """Raises PlanError for a kernel that the plan names and that is neither built here nor can be.

        Also for a sysctl that a kernel lacks, and for a congestion control that all lack, where the kernels have run
        before: only then it is known what they have.  Nothing is built or booted, and the kernel that runs where a
        plan names none need not be there.
        """
        _check_names(plan)
        _check_parts(plan)
        _check_sysctls(plan)
        _check_ccs(plan)

    def ready(self, points: Sequence[Point], request: Request) -> ReadyTestbed:
        request.refuse_wait("lab")
        kernels = {request.kernel.name: request.kernel} if request.kernel else None
        return LabTestbed.for_points(points, request.wall_limit_s, request.commands, kernels)


def _check_parts(plan: Plan) -> None:
    """That the kernels of a point can share one time: see lab/shared_time.py."""
    for point in plan.points:
        if not (parts := parts_of(point)):
            continue
        try:
            shared_time.cuts(point, parts)
        except TestbedError as error:
            raise PlanError(f"{plan.file}: point {point.id}: {error}") from error
        if backend_of(point) in BRIDGED or own_programs(point):
            raise PlanError(
                f"{plan.file}: point {point.id}: several kernels: want switches with the testbed's own program; "
                f"got {', '.join(own_programs(point).values()) or backend_of(point)}"
            )


def _check_sysctls(plan: Plan) -> None:
    wrong: dict[str, str] = {}
    for name, points in _by_kernel(plan).items():
        kernel = built.built(name)
        for setting, why in refused(points, kernel, listed).items() if kernel else ():
            wrong.setdefault(_place(plan, *setting), why)
    if wrong:
        raise PlanError("\n".join(f"{place}: {text}" for place, text in wrong.items()))


def _place(plan: Plan, host: str, name: str, value: object) -> str:
    """Where a plan says that a host has this value of a parameter."""
    for assignment in plan.assignments:
        for target in assignment.targets:
            if (target.entity, target.param) == (host, name) and value in target.values:
                return f"{assignment.places[target.values.index(value)]}"
    return f"host {host}, {name}"


def _check_ccs(plan: Plan) -> None:
    """No error as long as one of the plan's kernels may have it, unless a kernel is to be built again for it."""
    by_kernel = _by_kernel(plan)
    built_kernels = {name: built.built(name) for name in by_kernel}
    wrong: dict[str, str] = {}
    for name, points in by_kernel.items():
        wrong |= unbuilt(name, ccs_of(points)) if built_kernels[name] else {}
    lists = {name: listed(kernel, CCS) if kernel else frozenset() for name, kernel in built_kernels.items()}
    if all(lists.values()):
        wrong = unknown(ccs_of(plan.points), lists) | wrong
    errors = [
        f"{place}: {wrong[cc]}"
        for assignment in plan.assignments
        for cc, place in zip(assignment.texts, assignment.places, strict=True)
        if assignment.param == "cc" and cc in wrong
    ]
    if wrong:
        raise PlanError("\n".join(errors or wrong.values()))


def _by_kernel(plan: Plan) -> dict[str, list[Point]]:
    names = dict.fromkeys(name for point in plan.points for name in kernels_of(point))
    return {name: on_kernel(plan.points, name) for name in names}


def _check_names(plan: Plan) -> None:
    wrong = []
    for assignment in (of for of in plan.assignments if of.param == "kernel"):
        for name, place in zip(assignment.texts, assignment.places, strict=True):
            try:
                if kernels.by_name(name) is None:
                    source.find(name)
            except TestctlError as error:
                wrong.append(f"{place}: {error}; built are: {', '.join(built.names()) or 'none'}")
    if wrong:
        raise PlanError("\n".join(wrong))
