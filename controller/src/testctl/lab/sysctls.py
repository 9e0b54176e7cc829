# SPDX-License-Identifier: Apache-2.0
"""The sysctls that points set of hosts in the lab, and whether a kernel has them, before any point is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testctl_agent.params.host.sysctl import SPEC
from testctl_agent.params.sysctls import KNOWN, comes_with, device_of
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.lab.kernel import Kernel
from testctl.lab.kernel_lists import FIXED, SYSCTLS, has
from testctl.plan import Point
from testctl.plan.diagnostics import suggest

Lists = Callable[[Kernel, str], frozenset[str]]
"""kernel_lists.has or kernel_lists.listed."""
Setting = tuple[str, str, Value]
"""A host, a parameter and a value."""


def check_sysctls(points: Iterable[Point], kernel: Kernel) -> None:
    """Raises PlanError if a host sets a sysctl, or a value, that this kernel does not have in a network namespace."""
    wrong = refused(points, kernel, has)
    if wrong:
        (host, name, _), why = next(iter(wrong.items()))
        more = len(dict.fromkeys(wrong.values())) - 1
        raise PlanError(f"host {host}, {name}: {why}" + (f" (and {more} more)" if more else ""))


def refused(points: Iterable[Point], kernel: Kernel, lists: Lists) -> dict[Setting, str]:
    """The settings of hosts that a kernel can't have, with the reason; {} where it is not known what it has."""
    there, fixed = lists(kernel, SYSCTLS), lists(kernel, FIXED)
    asked = dict.fromkeys(
        (host, name, value)
        for point in points
        for host in point.topology.hosts
        for name, value in point.settings.get(host, {}).items()
        if there and full_name(name)
    )
    found = {one: _why_not(one[1], one[2], kernel.name, there, fixed) for one in asked}
    return {one: why for one, why in found.items() if why}


def _why_not(name: str, value: Value, kernel: str, there: frozenset[str], fixed: frozenset[str]) -> str:
    full = full_name(name)
    if full not in there:
        why = "has no such sysctl in a host, or only in its first network namespace"
        return f"{full}: kernel {kernel} {why}{suggest(full, there)}"
    if full in fixed:
        return f"{full}: in a host of kernel {kernel} it can only be read, or only be written"
    sign = comes_with(full.removeprefix("net.ipv4."), value)
    return f"kernel {kernel} has no value {value}; it has no {sign} either" if sign and sign not in there else ""


def full_name(name: str) -> str:
    """The name of a sysctl as the kernel lists it, a device's name replaced by "default"; "" for what is none."""
    if not SPEC.matches(name):
        return ""
    full = f"net.ipv4.{name}" if name in KNOWN else name
    device = device_of(full.removeprefix("net.ipv4."))
    return full.replace(f".{device}.", ".default.") if device else full
