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
    """The congestion controls that points name, of hosts and of flows."""
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
    """Of congestion controls those for which a kernel is to be built again, and the text of the error about each."""
    wanted = set(ccs)
    if built.built(kernel, wanted):
        return {}
    found = {}
    for cc in sorted(wanted):
        try:
            built.kernel_for(kernel, {cc})
        except TestbedError as error:
            found[cc] = f"cc: {error}"
    return found


def unknown(ccs: Iterable[str], lists: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Of congestion controls those that no kernel has, and the text of the error about each.

    lists: what each kernel has, by its name; all are known
    """
    there = frozenset().union(*lists.values())
    names = f"kernel{'' if len(lists) == 1 else 's'} {', '.join(sorted(lists))}"
    have = "have" if len(lists) > 1 else "has"
    return {
        cc: f"cc: {names} {have} no congestion control {cc}{_own(cc) or suggest(cc, there)}; "
        f"there are {', '.join(sorted(there))}"
        for cc in sorted(set(ccs) - there)
    }


def _own(cc: str) -> str:
    file = checkout.lab() / "cc" / f"tcp_{cc}.c"
    return f", which was built without {file}" if file.is_file() else ""
