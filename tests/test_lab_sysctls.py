# SPDX-License-Identifier: Apache-2.0
"""A sysctl that the lab's kernel has not is refused before a lab is booted for a point."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from testctl.lab.built import kernel_for
from testctl.lab.kernel_ccs import check_ccs
from testctl.lab.kernel_lists import FIXED, SYSCTLS, has
from testctl.lab.sysctls import check_sysctls
from testctl.plan import load_plan
from testctl.testbeds.choose import find
from testctl_agent.params import registry
from testctl_agent.params.sysctls import type_of
from testctl_agent.params.types import Never
from testctl_agent.spec.errors import PlanError

from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

NEW = [name for name in os.environ.get("TESTCTL_TEST_KERNELS", "").split(",") if name.startswith("7")]
"""Kernels that negotiate Accurate ECN (RFC 9768)."""

PLAN = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
  - [hosts, {name}, {value}]
  - [bulk, duration, 50ms]
"""


@pytest.mark.parametrize(
    ("name", "value", "there"),
    [
        ("tcp_ecn", "1", True),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456", True),
        ("net.ipv4.conf.eth0.rp_filter", "1", True),
        ("net.core.default_qdisc", "fq", False),
        ("net.ipv4.tcp_such_a_one", "1", False),
        ("tcp_shrink_window", "1", True),
    ],
)
def test_what_the_kernel_has(release: str, name: str, value: str, there: bool) -> None:
    points = load_plan(PLAN.format(name=name, value=value).encode(), metrics={}).points
    if there:
        check_sysctls(points, kernel_for(release))
        return
    with pytest.raises(PlanError, match=f"{name}: kernel {release} has no such sysctl"):
        check_sysctls(points, kernel_for(release))


def test_plan_and_run_refuse_a_sysctl_that_a_host_can_t_set(release: str) -> None:
    there = (
        "kernel 6.1 has no such sysctl in a host"
        if release == "6.1"
        else f"in a host of kernel {release} it can only be read"
    )
    why = f"net.core.rmem_max: {there}"
    text = PLAN.format(name="net.core.rmem_max", value=4194304) + f"  - [hosts, kernel, '{release}']\n"
    plan = load_plan(text.encode(), metrics={})
    with pytest.raises(PlanError) as refused:
        check_sysctls(plan.points, kernel_for(release))
    assert f"{refused.value}".startswith(f"host sender, net.core.rmem_max: {why}")
    with pytest.raises(PlanError) as refused:
        find("lab").check(plan)
    assert f"{refused.value}".startswith(f"<plan>:5:32: {why}")


SHORT = re.compile(r"net\.ipv4\.((?:tcp|ip|udp|icmp)_[a-z0-9_]+)")


def test_the_name_alone_is_enough(release: str) -> None:
    kernel = kernel_for(release)
    names = {match[1] for name in has(kernel, SYSCTLS) - has(kernel, FIXED) if (match := SHORT.fullmatch(name))}
    never = {name for name in names if isinstance(type_of(name), Never)} | {"tcp_allowed_congestion_control"}
    assert len(names) > 80
    assert {name for name in names - never if registry.find("host", name) is None} == set()


def test_the_congestion_controls_that_the_kernel_has(release: str) -> None:
    kernel = kernel_for(release)
    plan = PLAN.format(name="cc", value="[cubic, bbr]") + "  - [bulk, cc, vegas]\n"
    check_ccs(load_plan(plan.encode(), metrics={}).points, [kernel])
    plan = PLAN.format(name="cc", value="[cubic, bbrr]")
    with pytest.raises(
        PlanError, match=rf"cc: kernel {release} has no congestion control bbrr; did you mean bbr\?; there"
    ):
        check_ccs(load_plan(plan.encode(), metrics={}).points, [kernel])


ACCECN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, tcp_ecn, 3]
  - ["switch:receiver", rate, 100mbit]
  - ["switch:receiver", ecn_threshold, 20kB]
  - [bulk, duration, 100ms]
"""


def test_accurate_ecn_is_refused_where_the_kernel_has_none() -> None:
    points = load_plan(ACCECN.encode(), metrics={}).points
    with pytest.raises(PlanError, match=r"host sender, .*tcp_ecn: kernel 6\.12 has no value 3; it has no net\.ipv4"):
        check_sysctls(points, kernel_for("6.12"))


@pytest.mark.skipif(not NEW, reason="TESTCTL_TEST_KERNELS names no kernel of Linux 7")
def test_accurate_ecn_is_negotiated_and_used(tmp_path: Path) -> None:
    (point,) = run_of(tmp_path, ACCECN, f'hosts.kernel="{NEW[0]}"').points
    assert point.verdict == "pass", point.reason
    assert float(point.metrics["bulk"]["ce_marks"] or 0) > 0
    assert not point.metrics["bulk"]["retransmissions"], "marks were heeded"
