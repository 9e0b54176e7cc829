# SPDX-License-Identifier: Apache-2.0
"""The congestion controls that points name, and whether a kernel has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.core.point import Point
from testctl.lab import built
from testctl.lab.kernel import Kernel
from testctl.lab.kernel_lists import CCS, has
from testctl.plan.diagnostics import suggest
from testctl.system import checkout


def ccs_of(points: Iterable[Point]) -> set[str]:
    named = (
        values.get("cc")
        for point in points
        for values in (*point.settings.values(), *(flow.options for flow in point.flows))
    )
    return {str(cc) for cc in named if cc}


def check_ccs(points: Iterable[Point], kernels: Iterable[Kernel]) -> None:
    """Raises PlanError for a congestion control that no kernel has; one that some have is skipped on the others."""
    lists = {kernel.name: has(kernel, CCS) for kernel in kernels}
    if wrong := unknown(ccs_of(points), lists):
        raise PlanError("\n".join(wrong.values()))


def unbuilt(kernel: str, ccs: Iterable[str]) -> dict[str, str]:
    """The congestion controls for which a kernel is to be built again, and the text of the error about each."""
    wanted = set(ccs)
    if built.built(kernel, wanted):
        return {}
    errors = {}
    for cc in sorted(wanted):
        try:
            built.kernel_for(kernel, {cc})
        except TestbedError as error:
            errors[cc] = f"cc: {error}"
    return errors


def unknown(ccs: Iterable[str], lists: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """The congestion controls that no kernel has, and the text of the error about each.

    lists: what each kernel has, by its name; all are known
    """
    known = frozenset().union(*lists.values())
    kernels = f"kernel{'' if len(lists) == 1 else 's'} {', '.join(sorted(lists))}"
    have = "have" if len(lists) > 1 else "has"
    errors = {}
    for cc in sorted(set(ccs) - known):
        source = checkout.lab() / "cc" / f"tcp_{cc}.c"
        hint = f", which was built without {source}" if source.is_file() else suggest(cc, known)
        errors[cc] = f"cc: {kernels} {have} no congestion control {cc}{hint}; there are {', '.join(sorted(known))}"
    return errors
