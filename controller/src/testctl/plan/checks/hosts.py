# SPDX-License-Identifier: Apache-2.0
"""Checks settings of hosts that depend on each other: a limiter and its rate, the MTU and IPv6."""

from __future__ import annotations

from collections.abc import Sequence

from testctl_agent.params.flow.socket import IPV6

from testctl.core.point import Point
from testctl.plan.checks.setters import place_of
from testctl.plan.diagnostics import Problems
from testctl.plan.model import Assignment

RATE = "htb_rate"
OF_LIMITER = ("htb_burst", "htb_buffer", "htb_ecn_threshold")
LEAST_MTU = 1280
"""Of a device with IPv6: RFC 8200, section 5."""


def check_hosts(assignments: Sequence[Assignment], points: Sequence[Point], problems: Problems) -> None:
    """Add a problem, once a host, for a limiter's setting at points without its rate, and for IPv6 over a small MTU."""
    hosts = {(t.entity, t.param): index for index, a in enumerate(assignments) for t in a.targets if t.kind == "host"}
    seen: set[tuple[str, str]] = set()
    for point in points:
        for (host, param), index in hosts.items():
            settings = point.settings.get(host, {})
            value = settings.get(param)
            default = next(t.spec.default for t in assignments[index].targets if (t.entity, t.param) == (host, param))
            if param in OF_LIMITER and settings.get(RATE, "none") == "none" and value not in ("none", default):
                why = f"want {RATE} too, at every point: there is no limiter without it; exclude the points without one"
            elif param == "mtu" and isinstance(value, int) and value < LEAST_MTU and _has_ipv6(point, host):
                why = f"want at least {LEAST_MTU} with a flow over IPv6 (RFC 8200, section 5); got {value}"
            else:
                continue
            if (host, param) not in seen:
                seen.add((host, param))
                problems.add(place_of(hosts, assignments, point, host, param), f"host {host}, {param}: {why}")


def _has_ipv6(point: Point, host: str) -> bool:
    return any(flow.family == IPV6 and host in flow.ends for flow in point.flows)
