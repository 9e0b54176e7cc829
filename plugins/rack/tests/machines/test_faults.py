# SPDX-License-Identifier: Apache-2.0
"""Faults that only machines have: no host stays changed, the error names the host, and the next run passes.

The table "Faults, and the state after each" of docs/testbeds.md has the same.  Part of `make machines` alone.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from machine_rack import qemu
from testctl.testbeds.point_runner import drift

from plugins.rack.tests.machines.machines import Machines, eventually

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]
PLAN = """
about: a flow that a fault meets
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, cc, cubic]
  - [all, mtu, 1400]
  - [hosts, net.ipv4.tcp_sack, 0]
  - [hosts, tso, on]
  - [hosts, capture, off]
  - [bulk, rate, 1mbit]
  - [bulk, duration, 15s]
"""
SHORT = PLAN.replace("15s", "1s")
KERNEL = SHORT + '  - [hosts, kernel, ["6.12", NAME]]\n'


@contextmanager
def unchanged(rack: Machines) -> Iterator[None]:
    """Every machine answers before and afterwards, is as before, and a run passes."""
    rack.answers()
    before = {one.name: rack.attest(one.name) for one in rack.rack.machines}
    yield
    rack.answers()
    eventually(lambda: drift(before, {name: rack.attest(name) for name in before}) == [], "all is as before")
    eventually(lambda: clocks_are_right(rack), "clocks are right")
    rack.ends(rack.begin(rack.plan(SHORT)), 0)


def clocks_are_right(rack: Machines) -> bool:
    done = [rack.ssh(one.name, "chronyc -c tracking") for one in rack.rack.machines]
    return all(one.code == 0 and abs(float(one.said.split(",")[4])) < 0.005 for one in done)


def reason(rack: Machines, verdict: str) -> str:
    (point,) = rack.points()
    assert point["verdict"] == verdict, point
    return str(point["reason"])


@pytest.mark.parametrize("step", ["Apply begins", "Apply ended", "Restore begins"])
def test_power_cut(rack: Machines, step: str) -> None:
    """A host's power is cut in Apply, after it, in Restore."""
    with unchanged(rack):
        process = rack.begin(rack.plan(SHORT))
        rack.reaches(f"receiver {step}", process)
        rack.cut("beta")
        rack.ends(process, 3)
        assert "host beta" in reason(rack, "broken")


def test_a_panic(rack: Machines) -> None:
    """A kernel panics in the traffic; it reboots by its own panic setting."""
    with unchanged(rack):
        process = rack.begin(rack.plan(PLAN))
        rack.reaches("sender Wait begins", process)
        rack.ssh("beta", "sysctl -qw kernel.panic=1; sh -c 'sleep 1; echo c >/proc/sysrq-trigger' >/dev/null 2>&1 &")
        rack.ends(process, 3)
        assert "host beta" in reason(rack, "broken")
        assert "Kernel panic" in qemu.console(rack.rack, rack.rack.of("beta"), lines=1000)


@contextmanager
def kernels(rack: Machines, name: str, on_alpha: str) -> Iterator[None]:
    """Another release in GRUB's menu of both hosts, older than theirs, since GRUB boots the newest by default; on alpha
    it is spoilt by a command, in /boot."""
    kept = "/var/tmp/grub.cfg"  # update-grub on a machine finds more than where the image was made
    commands = [
        f"cp -p grub/grub.cfg {kept}", f"cp vmlinuz-6.1.0* vmlinuz-{name}", f"cp initrd.img-6.1.0* initrd.img-{name}"
    ]  # fmt: skip
    for host, more in (("alpha", on_alpha), ("beta", "true")):
        done = rack.ssh(host, " && ".join(["cd /boot", *commands, more, "update-grub 2>/dev/null >&2"]))
        assert done.code == 0, done.said
    try:
        yield
    finally:
        rack.answers()
        for host in ("alpha", "beta"):
            done = rack.ssh(host, f"rm -f /boot/*-{name} && cp -p {kept} /boot/grub/grub.cfg && rm {kept}")
            assert done.code == 0, done.said


def verdicts(rack: Machines) -> dict[str, dict[str, str]]:
    return {point["tuples"][-1][2]: point for point in rack.points()}


def test_a_kernel_that_panics_as_it_boots(rack: Machines) -> None:
    """Without an initrd it has no root; GRUB then boots the default, and the points of the other kernel pass."""
    name = "6.0.97-panics"
    with unchanged(rack), kernels(rack, name, f"rm initrd.img-{name}"):
        rack.ends(rack.begin(rack.plan(KERNEL.replace("NAME", name))), 3)
        assert verdicts(rack)["6.12"]["verdict"] == "pass"
        found = verdicts(rack)[name]
        assert found["verdict"] == "broken"
        assert "host alpha" in found["reason"]
        assert f"want {name}; got 6.12" in found["reason"]
        assert "Kernel panic" in found["reason"]


def test_a_kernel_that_hangs_is_switched_off(rack: Machines) -> None:
    """Its initrd does nothing for ever; the inventory's power cycle brings the host back."""
    name = "6.0.98-hangs"
    init = "mkdir -p /run/i && cd /run/i && printf '#!/bin/sh\\nsleep 100000\\n' >init && chmod 755 init && "
    initrd = f"/boot/initrd.img-{name}"
    init += f"truncate -s %4 {initrd} && echo init | cpio --quiet -o -H newc >>{initrd} && cd /boot"
    with unchanged(rack), kernels(rack, name, init):
        process = rack.begin(rack.plan(KERNEL.replace("NAME", name)), TESTCTL_BOOT_S="200")
        rack.ends(process, 3)
        found = verdicts(rack)[name]
        assert found["verdict"] == "broken"
        assert "got no agent within 200 s" in found["reason"]
        assert "after a power cycle it runs 6.12" in found["reason"]


def test_a_disk_that_is_full(rack: Machines) -> None:
    with unchanged(rack):
        rack.ssh("beta", "dd if=/dev/zero of=/var/full bs=1M 2>/dev/null; sync")
        try:
            rack.ends(rack.begin(rack.plan(SHORT)), 3)
            assert "host beta" in reason(rack, "broken")
        finally:
            rack.ssh("beta", "rm /var/full; sync")


def test_a_nic_without_a_cable(rack: Machines) -> None:
    """The NIC has no carrier for three seconds of the traffic."""
    with unchanged(rack):
        process = rack.begin(rack.plan(PLAN))
        rack.reaches("sender Wait begins", process)
        machine = rack.rack.of("beta")
        time.sleep(2)
        qemu.link(rack.rack, machine, "eth1", up=False)
        time.sleep(3)
        qemu.link(rack.rack, machine, "eth1", up=True)
        rack.ends(process, 3)
        words = reason(rack, "invalid")
        assert "host beta" in words
        assert "the link of eth1 went down or came up" in words


def test_the_switch_boots_in_a_point(rack: Machines) -> None:
    with unchanged(rack):
        process = rack.begin(rack.plan(PLAN))
        rack.reaches("sender Wait begins", process)
        rack.cut("s1")
        rack.ends(process, 3)
        assert "switch s1" in reason(rack, "broken")


def test_a_management_network_that_is_cut(rack: Machines) -> None:
    with unchanged(rack):
        process = rack.begin(rack.plan(PLAN))
        rack.reaches("sender Wait begins", process)
        rack.plug("beta", up=False)
        rack.ends(process, 3)
        assert "host beta" in reason(rack, "broken")
        rack.plug("beta", up=True)


def test_a_management_network_that_is_slow(rack: Machines) -> None:
    """100 ms of delay each way, so that the clocks stay right: the point waits, and passes."""
    slow = (
        "modprobe ifb numifbs=0; ip link add slow type ifb && ip link set slow up && tc qdisc add dev mgmt ingress && "
        "tc filter add dev mgmt parent ffff: matchall action mirred egress redirect dev slow && "
        "tc qdisc add dev slow root netem delay 100ms && tc qdisc add dev mgmt root netem delay 100ms"
    )
    with unchanged(rack):
        try:
            done = rack.ssh("beta", slow)
            assert done.code == 0, done.said
            before = time.monotonic()
            rack.attest("beta")
            assert time.monotonic() - before > 0.4  # a connection, TLS and a call
            rack.ends(rack.begin(rack.plan(SHORT)), 0)
        finally:
            rack.ssh("beta", "tc qdisc del dev mgmt root; tc qdisc del dev mgmt ingress; ip link del slow")


def test_a_controller_that_is_gone(rack: Machines) -> None:
    with unchanged(rack):
        process = rack.begin(rack.plan(PLAN))
        rack.reaches("sender Wait begins", process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)


def test_an_agent_of_the_version_before(rack: Machines) -> None:
    with unchanged(rack):
        code = "/opt/testctl-agent/venv/lib/python3*/site-packages/testctl_agent/main.py"
        rack.ssh("beta", f"cp {code} /run/main.py; echo '# before' >>$(ls {code}); systemctl restart testctl-agent")
        try:
            rack.answers("beta")
            said = rack.ends(rack.begin(rack.plan(SHORT)), 3)
            assert "host beta" in said
            assert "version of the agent: want" in said
        finally:
            rack.ssh("beta", f"cp /run/main.py $(ls {code}); systemctl restart testctl-agent")
