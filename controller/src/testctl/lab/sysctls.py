# SPDX-License-Identifier: Apache-2.0
"""The sysctls that points set of hosts in the lab, and whether a kernel has them, before any point is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from testctl_agent.params.host.sysctl import SPEC
from testctl_agent.params.sysctls import KNOWN, comes_with, device_of
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Value

from testctl.lab.kernel import Kernel
from testctl.lab.kernel_lists import SYSCTLS, has
from testctl.plan import Point


def check_sysctls(points: Iterable[Point], kernel: Kernel) -> None:
    """Raises PlanError if a host sets a sysctl, or a value, that this kernel does not have in a network namespace."""
    points = list(points)
    there = has(kernel, SYSCTLS)
    for host, name, value in _values(points):
        sign = comes_with(name.removeprefix("net.ipv4."), value)
        if sign and sign not in there:
            raise PlanError(f"host {host}, {name}: kernel {kernel.name} has no value {value}; it has no {sign} either")
    missing = sorted(set(_wanted(points)) - there)
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise PlanError(
            f"{missing[0]}{more}: kernel {kernel.name} has no such sysctl, or only in its first network namespace, "
            "and a lab's hosts are in others"
        )


def _wanted(points: Iterable[Point]) -> Iterator[str]:
    """Full names of the sysctls that points set; a device's name is replaced by "default"."""
    for point in points:
        for host in point.topology.hosts:
            yield from (full for name in point.settings.get(host, {}) if (full := full_name(name)))


def _values(points: Iterable[Point]) -> Iterator[tuple[str, str, Value]]:
    """(host, parameter, value) of all that points set of hosts."""
    for point in points:
        for host in point.topology.hosts:
            yield from ((host, name, value) for name, value in point.settings.get(host, {}).items())


def full_name(name: str) -> str:
    """The name of a sysctl as the kernel lists it, a device's name replaced by "default"; "" for what is none."""
    if not SPEC.matches(name):
        return ""
    full = f"net.ipv4.{name}" if name in KNOWN else name
    device = device_of(full.removeprefix("net.ipv4."))
    return full.replace(f".{device}.", ".default.") if device else full
