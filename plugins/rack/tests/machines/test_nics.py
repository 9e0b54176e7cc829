# SPDX-License-Identifier: Apache-2.0
"""Settings of a NIC with a driver, e1000e: set, read back, refused, absent, restored.  For `make machines`.

docs/hardware.md has the table of what was tested on what.
"""

from __future__ import annotations

import pytest
from testctl.testbeds.point_runner import drift

from plugins.rack.tests.machines.machines import Machines

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]
PLAN = """
about: a NIC's settings
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, cc, cubic]
  - [hosts, capture, off]
  - [bulk, bytes, 200kB]
"""
SET = {
    "ring_rx": "512", "ring_tx": "128", "coalesce_rx": "50us", "pause_autoneg": "off", "pause_rx": "off",
    "pause_tx": "off", "tso": "off", "gro": "off", "mtu": "1400",
}  # fmt: skip
ABSENT = {
    "queues": ("1", "queues that can be set"), "lro": ("on", "large receive offload that can be switched"),
    "coalesce_tx": ("50us", "send coalescing by time"), "coalesce_rx_frames": ("4", "receive coalescing by packets"),
    "coalesce_adaptive_rx": ("on", "adaptive receive coalescing"),
}  # fmt: skip
REFUSED = {"ring_rx": "8192", "coalesce_rx": "2us"}


def point(rack: Machines, code: int, **values: str) -> dict[str, str]:
    """The one point of a plan that sets values on both hosts and, of the path, on the switch."""
    tuples = [f"  - [{'all' if name == 'mtu' else 'hosts'}, {name}, {value}]\n" for name, value in values.items()]
    rack.ends(rack.begin(rack.plan(PLAN + "".join(tuples))), code)
    (found,) = rack.points()
    return found


def everything(rack: Machines) -> dict[str, dict[str, str]]:
    return {one.name: rack.attest(one.name) for one in rack.rack.machines}


def test_the_management_device_comes_first(rack: Machines) -> None:
    """Before e1000e is loaded: else it may be eth1 until udev has named it mgmt, and the test network's stays eth0."""
    for machine in rack.rack.machines:
        said = rack.ssh(machine.name, "lsinitramfs /boot/initrd.img-$(uname -r); dmesg").said
        assert "/virtio_net.ko" in said
        assert "mgmt: renamed from eth0" in said


def test_a_nic_is_set_and_restored(rack: Machines) -> None:
    """Rings, coalescing, pause frames, offloads and MTU of e1000e, which takes its link down for most of them."""
    before = everything(rack)
    assert "driver: e1000e" in rack.ssh("alpha", "ethtool -i eth1").said
    assert point(rack, 0, **SET)["verdict"] == "pass"
    assert drift(before, everything(rack)) == []


@pytest.mark.parametrize("name", ABSENT)
def test_what_a_nic_has_not(rack: Machines, name: str) -> None:
    value, what = ABSENT[name]
    found = point(rack, 4, **{name: value})
    assert found["verdict"] == "skip"
    assert f"device eth1 (e1000e) has no {what}" in found["reason"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_nic_refuses(rack: Machines, name: str) -> None:
    before = everything(rack)
    found = point(rack, 3, **{name: REFUSED[name], "tso": "off"})
    assert found["verdict"] == "broken"
    assert f"{name}: want " in found["reason"]
    assert "eth1" in found["reason"]
    assert drift(before, everything(rack)) == []
