# SPDX-License-Identifier: Apache-2.0
"""Clocks compared: the estimate against clocks whose offset is known, and real packets of one clock."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.collect import _clock_state, clock
from testctl_agent.collect._clock_estimate import Exchange, estimate, quickest_of_parts
from testctl_agent.engine.factory import new_task
from testctl_agent.spec.errors import TestbedError

HERE = "127.0.0.1"
START = 1_700_000_000_000_000_000
delays = st.integers(0, 10**7)
steps = st.tuples(st.integers(1, 10**8), delays, st.integers(0, 10**6), delays)
"""Time since the last request, delay there, time at the far host, delay back, in ns."""


def exchanges(offset: int, drift: float, taken: list[tuple[int, int, int, int]]) -> list[Exchange]:
    """What clocks would show that are `offset` apart at START, growing by `drift`; the near one is right."""

    def far(now: int) -> int:
        return now + offset + math.floor(drift * (now - START))

    found, now = [], START
    for pause, there, stay, back in taken:
        now += pause
        found.append(Exchange(now, far(now + there), far(now + there + stay), now + there + stay + back))
    return found


@given(st.integers(-(10**12), 10**12), st.lists(steps, min_size=1, max_size=60))
def test_the_offset_lies_within_the_error_whatever_the_delays(
    offset: int, taken: list[tuple[int, int, int, int]]
) -> None:
    found = estimate(exchanges(offset, 0.0, taken))
    assert abs(found.offset_ns - offset) <= found.error_ns <= found.error_run_ns
    least = min(there + back for _, there, _, back in taken)
    assert found.rtt_ns == least
    assert found.error_ns == (least + 1) // 2
    assert found.samples == len(taken)


@given(st.integers(-(10**9), 10**9), st.floats(-200e-6, 200e-6), st.lists(steps, min_size=1, max_size=60))
def test_the_error_of_the_run_covers_drift(offset: int, drift: float, taken: list[tuple[int, int, int, int]]) -> None:
    made = exchanges(offset, drift, taken)
    found = estimate(made)

    def wrong_by(one: Exchange) -> float:
        """What the estimate is wrong by at an exchange, less what the clocks drift while it is under way."""
        return abs(found.offset_ns - offset - drift * (one.at - START)) - abs(drift) * (one.t4 - one.t1) - 2

    assert wrong_by(min(made, key=lambda one: one.rtt)) <= found.error_ns
    assert all(wrong_by(one) <= found.error_run_ns for one in quickest_of_parts(made))
    assert (found.begin_ns, found.end_ns) == (made[0].t1, max(one.t4 for one in made))


def test_drift_is_found_when_the_delays_are_steady() -> None:
    made = exchanges(5000, 40e-6, [(10**7, 20_000, 1000, 20_000)] * 500)
    found = estimate(made)
    assert found.drift_ppm == pytest.approx(40, abs=0.1)
    assert estimate(made[:1]).drift_ppm == 0


def test_an_exchange_across_a_step_of_the_clock_is_left_out() -> None:
    good, stepped = Exchange(0, 110, 120, 30), Exchange(1000, 1100, 5000, 1050)
    assert stepped.rtt < 0
    assert estimate([stepped, good]).samples == 1
    with pytest.raises(ValueError, match="got 1 without"):
        estimate([stepped])


@given(st.binary(max_size=80))
def test_foreign_payloads_are_no_messages(data: bytes) -> None:
    found = clock.unpack(data)
    assert found is None or clock.pack(*found)[:5] == data[:5]


def test_a_packet_is_read_back() -> None:
    assert clock.unpack(clock.pack(2, 2**64 - 1, 7, START, START + 1)) == (2, 2**64 - 1, 7, START, START + 1)


@pytest.fixture
def port() -> int:
    """A UDP port that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        return int(sock.getsockname()[1])


def test_one_clock_is_not_apart_from_itself(tmp_path: Path, port: int) -> None:
    server = new_task("collector", "clock", {"side": "server", "address": HERE, "port": port, "seed": 5}, tmp_path)
    server.start()
    options = {"side": "client", "address": HERE, "bind": HERE, "port": port, "seed": 5, "count": 50}
    asking = new_task("collector", "clock", options | {"interval_ns": 10**6}, tmp_path)
    asking.start()
    assert asking.wait(120)
    found = asking.result()
    assert abs(found["offset_ns"]) <= found["error_ns"] <= found["error_run_ns"]
    assert (found["samples"] + found["lost"], found["source"]) == (50, "packets")
    server.stop()
    assert server.result()["answered"] >= found["samples"]
    assert server.result()["state"]["source"] in ("chrony", "ptp", "kernel")


def test_an_address_may_be_written_in_another_way(tmp_path: Path, port: int) -> None:
    there = {"port": port, "address": "0:0:0:0:0:0:0:1"}
    server = clock.task(there | {"side": "server", "peer": "::0001"}, tmp_path)
    server.start()
    asking = clock.task(there | {"side": "client", "bind": "::1", "count": 20, "interval_ns": 10**6}, tmp_path)
    asking.start()
    assert asking.wait(120)
    server.stop()
    assert asking.result()["samples"] >= 1


def test_it_ends_with_its_span_but_not_before_it_knows_enough(tmp_path: Path, port: int) -> None:
    server = clock.task({"side": "server", "address": HERE, "port": port}, tmp_path)
    server.start()
    options = {"side": "client", "address": HERE, "bind": HERE, "port": port, "count": 1000, "span_ns": 1}
    asking = clock.task(options | {"interval_ns": 10**6}, tmp_path)
    asking.start()
    assert asking.wait(120)
    server.stop()
    assert asking.result()["samples"] == clock.MIN


def test_until_it_is_stopped(tmp_path: Path, port: int) -> None:
    server = clock.task({"side": "server", "address": HERE, "port": port}, tmp_path)
    server.start()
    asking = clock.task({"side": "client", "address": HERE, "bind": HERE, "port": port, "count": 0}, tmp_path)
    asking.start()
    assert not asking.wait(1)
    asking.stop()
    server.stop()
    assert asking.result()["samples"] >= 1


def test_errors_say_who(tmp_path: Path, port: int) -> None:
    asking = clock.task(
        {"side": "client", "address": HERE, "bind": HERE, "port": port, "count": 2, "interval_ns": 1}, tmp_path
    )
    asking.start()
    assert asking.wait(120)
    with pytest.raises(TestbedError, match=rf"clock client: no answer from {HERE}, UDP port {port}, to 2 requests"):
        asking.result()
    with pytest.raises(TestbedError, match="want side server, client or state; got middle"):
        clock.task({"side": "middle"}, tmp_path)


TRACKING = "C0000201,192.0.2.1,2,1700000000.123456789,0.000012500,-0.000003000,0.000020000,-11.5,0.001,0.05,0.000400000,0.000100000,64.2,Normal\n"  # noqa: E501
PTP = """sending: GET CURRENT_DATA_SET
sending: GET PORT_PROPERTIES_NP
	728625.fffe.332340-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
		stepsRemoved     1
		offsetFromMaster -37.0
		meanPathDelay    512.0
	728625.fffe.332340-1 seq 1 RESPONSE MANAGEMENT PORT_PROPERTIES_NP
		portIdentity            728625.fffe.332340-1
		portState               SLAVE
		timestamping            SOFTWARE
		interface               eth0
"""


def test_what_chrony_says() -> None:
    found = _clock_state.chrony(TRACKING)
    assert (found.source, found.synchronised, found.reference) == ("chrony", True, "192.0.2.1")
    assert (found.offset_ns, found.error_ns) == (-12_500, 312_500)
    assert not _clock_state.chrony(TRACKING.replace("Normal", "Not synchronised")).synchronised
    with pytest.raises(TestbedError, match="want 14 fields, numbers; got '506 Cannot talk to daemon'"):
        _clock_state.chrony("506 Cannot talk to daemon")


def test_what_ptp_says() -> None:
    found = _clock_state.ptp(PTP)
    assert (found.source, found.synchronised, found.offset_ns, found.error_ns) == ("ptp", True, -37, 549)
    with pytest.raises(TestbedError, match="pmc: want offsetFromMaster, meanPathDelay, portState, timestamping; got"):
        _clock_state.ptp(PTP.splitlines()[0])


def test_a_clock_that_ptp_has_measured_but_not_set_is_not_synchronised() -> None:
    """ptp4l's answer before it knows a delay: 0 ns from its master, on a path of 0 ns."""
    begun = PTP.replace("SLAVE", "UNCALIBRATED").replace("-37.0", "0.0").replace("512.0", "0.0")
    assert not _clock_state.ptp(begun).synchronised


def test_with_hardware_timestamps_ptp_knows_the_nics_clock_only() -> None:
    with pytest.raises(TestbedError, match="pmc: want timestamping SOFTWARE; got HARDWARE: its offset is that of the"):
        _clock_state.ptp(PTP.replace("SOFTWARE", "HARDWARE"))


def test_the_kernel_always_says_something() -> None:
    found = _clock_state.kernel()
    assert found.source == "kernel"
    assert found.error_ns >= 0


@pytest.mark.root
def test_two_namespaces_of_one_clock(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_clock.py")).endswith("done\n")
