# SPDX-License-Identifier: Apache-2.0
"""Machines with kernels of their own: deployment under systemd, a plan over two kernels, a power cut, teardown.

One rack serves all, in this order; its machines are QEMU's.
"""

from __future__ import annotations

import re

import pytest
import yaml

from plugins.rack.tests.machines.conftest import ALL, ONE
from plugins.rack.tests.machines.machines import Machines
from tests.playbooks import ROLES

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]
UNIT = "testctl-agent.service"
SWEEP = """
about: a flow on two kernels, over the eBPF switch
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, kernel, ["6.1", "6.12"]]
  - [bulk, cc, cubic]
  - [hosts, net.ipv4.tcp_sack, 0]
  - [all, mtu, 1400]
  - [hosts, capture, off]
  - [bulk, bytes, 200kB]
"""
LONG = """
about: a flow that a power cut meets
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, cc, cubic]
  - [all, mtu, 1400]
  - [hosts, capture, off]
  - [bulk, rate, 1mbit]
  - [bulk, duration, 20s]
"""


def test_the_unit_runs(rack: Machines) -> None:
    """It is enabled, journald has its lines, its capabilities are those of the role, and systemd rates it."""
    defaults = yaml.safe_load((ROLES / "agent/defaults/main.yml").read_text(encoding="utf-8"))
    for machine in rack.rack.machines:
        assert rack.ssh(machine.name, "systemctl", "is-enabled", UNIT).said == "enabled\n"
        assert rack.ssh(machine.name, "systemctl", "is-active", UNIT).said == "active\n"
        assert "ready" in rack.ssh(machine.name, "journalctl", "--output=cat", f"--unit={UNIT}").said
        status = rack.ssh(machine.name, f"cat /proc/$(systemctl show -P MainPID {UNIT})/status").said
        sets = {one[1]: int(one[2], 16) for one in re.finditer(r"^Cap(\w+):\s+([0-9a-f]+)$", status, re.MULTILINE)}
        numbers = {"cap_dac_override": 1, "cap_net_admin": 12, "cap_net_raw": 13, "cap_sys_admin": 21}
        assert sets["Eff"] == sets["Bnd"] == sum(1 << numbers[name] for name in defaults["agent_capabilities"])
    rated = rack.ssh("alpha", "systemd-analyze", "security", "--no-pager", UNIT).said
    score = re.search(r"Overall exposure level for .*: ([0-9.]+)", rated)
    assert score is not None, rated
    assert float(score[1]) < 4.0, rated


def test_a_plan_boots_its_kernels(rack: Machines) -> None:
    """Each point ran on its kernel; at the end every host runs what it ran, and GRUB's files are as before."""
    before = {name: rack.attest(name)["kernel"] for name in ("alpha", "beta", "s1")}
    grub = rack.ssh("alpha", "cat /boot/grub/grub.cfg /boot/grub/grubenv; ls /boot/grub").said
    said = rack.ends(rack.begin(rack.plan(SWEEP)), 0)
    kernels = {point["tuples"][0][2]: rack.outcome(point)["kernel"] for point in rack.points()}
    assert {name: release.startswith(f"{name}.") for name, release in kernels.items()} == {"6.1": True, "6.12": True}
    assert said.count("testctl: boots alpha into") == 1
    assert {name: rack.attest(name)["kernel"] for name in ("alpha", "beta", "s1")} == before
    assert rack.ssh("alpha", "cat /boot/grub/grub.cfg /boot/grub/grubenv; ls /boot/grub").said == grub


def test_a_power_cut_in_the_traffic(rack: Machines) -> None:
    """Its point is broken and names the host; after it has booted the host is as before, and a run passes."""
    before = rack.attest("beta")
    process = rack.begin(rack.plan(LONG))
    rack.reaches("sender Wait begins", process)
    rack.cut("beta")
    rack.ends(process, 3)
    (point,) = rack.points()
    assert point["verdict"] == "broken"
    assert "host beta" in point["reason"]
    rack.answers("beta")
    assert rack.attest("beta") == before
    assert rack.testctl("restore", "--testbed", str(rack.inventory)).code == 0
    rack.ends(rack.begin(rack.plan(LONG.replace("20s", "1s"))), 0)


def test_teardown_leaves_every_machine_as_it_was(rack: Machines, before: dict[str, list[str]]) -> None:
    done = rack.play("teardown", *([] if ALL else ONE))
    assert done.code == 0, done.said
    for name in before if ALL else ["alpha"]:
        assert sorted(set(rack.files(name)) ^ set(before[name])) == []
