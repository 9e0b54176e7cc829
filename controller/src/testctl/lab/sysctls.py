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
    known, fixed = lists(kernel, SYSCTLS), lists(kernel, FIXED)
    settings = dict.fromkeys(
        (host, name, value)
        for point in points
        for host in point.topology.hosts
        for name, value in point.settings.get(host, {}).items()
        if known and full_name(name)
    )
    reasons = {
        (host, name, value): _why_not(full_name(name), value, kernel.name, known, fixed)
        for host, name, value in settings
    }
    return {setting: why for setting, why in reasons.items() if why}


def _why_not(sysctl: str, value: Value, kernel: str, known: frozenset[str], fixed: frozenset[str]) -> str:
    if sysctl not in known:
        why = "has no such sysctl in a host, or only in its first network namespace"
        return f"{sysctl}: kernel {kernel} {why}{suggest(sysctl, known)}"
    if sysctl in fixed:
        return f"{sysctl}: in a host of kernel {kernel} it can only be read, or only be written"
    sign = comes_with(sysctl.removeprefix("net.ipv4."), value)
    return f"kernel {kernel} has no value {value}; it has no {sign} either" if sign and sign not in known else ""


def full_name(name: str) -> str:
    """The name of a sysctl as the kernel lists it, a device's name replaced by "default"; "" for another parameter."""
    if not SPEC.matches(name):
        return ""
    full = f"net.ipv4.{name}" if name in KNOWN else name
    device = device_of(full.removeprefix("net.ipv4."))
    return full.replace(f".{device}.", ".default.") if device else full
