# SPDX-License-Identifier: Apache-2.0
"""A sysctl that the lab's kernel has not is refused before a lab is booted for a point."""

from __future__ import annotations

import pytest
from testctl.lab.sysctls import check_sysctls
from testctl.plan import load_plan
from testctl.testbeds.lab import kernel_for
from testctl_agent.spec.errors import PlanError

pytestmark = pytest.mark.lab

PLAN = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, {name}, {value}]
  - [bulk, duration, 50ms]
"""


@pytest.mark.parametrize("release", ["6.12", "6.1"])
@pytest.mark.parametrize(
    ("name", "value", "there"),
    [
        ("tcp_ecn", "1", True),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456", True),
        ("net.ipv4.conf.eth0.rp_filter", "1", True),
        ("net.core.default_qdisc", "fq", False),
        ("net.ipv4.tcp_such_a_one", "1", False),
    ],
)
def test_what_the_kernel_has(release: str, name: str, value: str, there: bool) -> None:
    points = load_plan(PLAN.format(name=name, value=value).encode(), metrics={}).points
    if there:
        check_sysctls(points, kernel_for(release))
        return
    with pytest.raises(PlanError, match=f"{name}: kernel {release} has no such sysctl"):
        check_sysctls(points, kernel_for(release))
