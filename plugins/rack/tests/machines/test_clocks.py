# SPDX-License-Identifier: Apache-2.0
"""Clocks of machines: apart by seconds, drifting, kept by chrony and by ptp4l.  For `make machines`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plugins.rack.tests.machines.machines import Machines, eventually
from plugins.rack.tests.machines.test_faults import SHORT, clocks_are_right

pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]
STEP = "python3 -c 'import time; time.clock_settime(time.CLOCK_REALTIME, time.time() + {})'"
DRIFT = (
    "python3 -c 'import ctypes; t = (ctypes.c_long * 26)(); t[0] = 2; t[2] = {} << 16; "
    "assert ctypes.CDLL(None).adjtimex(t) >= 0, t[:]'"
)
"""Sets how fast the clock runs, in millionths (adjtimex(2), ADJ_FREQUENCY)."""

QUEUE = """
about: a flow that fills the queue before a slow link
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, cc, cubic]
  - [all, mtu, 1400]
  - [hosts, tso, off]   # with it QEMU's e1000e sends fragments of IP, and a capture is not what the kernel counts
  - [switch:receiver, rate, 1mbit]
  - [switch:receiver, buffer, 40kB]
  - [bulk, duration, 5s]
"""


@contextmanager
def without_chrony(rack: Machines, *names: str) -> Iterator[None]:
    for name in names:
        assert rack.ssh(name, "systemctl stop chrony").code == 0
    try:
        yield
    finally:
        for name in names:
            rack.ssh(name, DRIFT.format(0))
            rack.ssh(name, "systemctl restart chrony")
        eventually(lambda: clocks_are_right(rack), "clocks are right")


def metrics(rack: Machines) -> dict[str, Any]:
    (point,) = rack.points()
    found: dict[str, Any] = point["metrics"]["bulk"]
    return found


def test_a_clock_that_is_seconds_apart_is_found_and_chrony_sets_it(rack: Machines) -> None:
    with without_chrony(rack, "beta"):
        assert rack.ssh("beta", STEP.format(3.5)).code == 0
        state = rack.clock_state("alpha")
        assert (state["source"], state["synchronised"]) == ("chrony", True), state
        rack.ends(rack.begin(rack.plan(SHORT)), 3)
        (point,) = rack.points()
        assert point["verdict"] == "broken"
        assert "host beta" in point["reason"]
        assert "its clock is +3.5" in point["reason"]
    rack.ends(rack.begin(rack.plan(SHORT)), 0)


def test_a_clock_that_drifts(rack: Machines) -> None:
    """200 millionths: the time in a full queue between two clocks is that which the switch has by its own, within the
    stated error."""
    with without_chrony(rack, "alpha", "beta"):
        assert rack.ssh("beta", DRIFT.format(200)).code == 0
        rack.ends(rack.begin(rack.plan(QUEUE)), 0)
        found = metrics(rack)
        assert 0 < found["clock_error_ns"] < 20e6, found
        assert found["switch_latency_p50_us"] > 100e3, found
        between_us = found["latency_p50_us"] - found["switch_latency_p50_us"]
        slow_us = 10e3  # what emulated hosts add at most
        assert -found["clock_error_ns"] <= between_us * 1e3 <= found["clock_error_ns"] + slow_us * 1e3, found


def test_ptp4l_keeps_two_clocks(rack: Machines) -> None:
    """ptp4l with software timestamps over the management network; the agents read its state through pmc."""
    run = "systemd-run --quiet --unit=rack-ptp ptp4l -i mgmt -S {}"
    with without_chrony(rack, "alpha", "beta"):
        try:
            assert rack.ssh("alpha", run.format("--masterOnly 1")).code == 0
            assert rack.ssh("beta", run.format("--slaveOnly 1 --step_threshold 0.001")).code == 0
            pmc = "pmc -u -b 0 'GET CURRENT_DATA_SET' | awk '/offsetFromMaster/ { print $2 }'"

            def close() -> bool:
                said = rack.ssh("beta", f"{pmc}; pmc -u -b 0 'GET PORT_DATA_SET' | grep -o SLAVE").said.split()
                return len(said) == 2 and said[1] == "SLAVE" and abs(float(said[0])) < 1e6

            eventually(close, "ptp4l is within 1 ms")
            state = rack.clock_state("beta")
            assert (state["source"], state["synchronised"]) == ("ptp", True), state
            assert abs(state["offset_ns"]) <= state["error_ns"] < 5e6
            rack.ends(rack.begin(rack.plan(SHORT)), 0)
        finally:
            for name in ("alpha", "beta"):
                rack.ssh(name, "systemctl stop rack-ptp")
