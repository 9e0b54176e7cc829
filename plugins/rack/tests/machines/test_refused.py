# SPDX-License-Identifier: Apache-2.0
"""Wrong requests to a rack of machines: who, wanted, got, where, and nothing changed.  For `make machines`."""

from __future__ import annotations

import shutil

import pytest

from plugins.rack.tests.machines.machines import Machines
from plugins.rack.tests.machines.test_faults import KERNEL, SHORT

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]


def test_a_second_rack(rack: Machines) -> None:
    done = rack.tool("up", "--machines")
    assert done.code == 3
    assert "want a directory that does not exist yet" in done.said


def test_a_kernel_that_no_host_has(rack: Machines) -> None:
    said = rack.ends(rack.begin(rack.plan(KERNEL.replace("NAME", "6.96"))), 2)
    assert "host alpha" in said
    assert "kernel: want 6.96; installed are 6.12" in said


def test_a_host_out_of_service(rack: Machines) -> None:
    other = rack.other_inventory(beta={"testctl_out_of_service": "its NIC is in another host"})
    try:
        done = rack.testctl("run", str(rack.plan(SHORT)), "--testbed", str(other))
    finally:
        shutil.rmtree(other)  # `plugins/rack/tools/rack down` removes what plugins/rack/tools/rack has made
    assert done.code == 2
    assert "host beta" in done.said
    assert "is out of service: its NIC is in another host" in done.said


def test_two_controllers(rack: Machines) -> None:
    first = rack.begin(rack.plan(SHORT.replace("1s", "8s")))
    rack.reaches("sender Start begins", first)
    done = rack.testctl("run", str(rack.where / "plan.yaml"), "--testbed", str(rack.inventory),
                        "--results", str(rack.where / "second"))  # fmt: skip
    assert done.code == 3
    assert "leased to" in done.said
    rack.ends(first, 0)
