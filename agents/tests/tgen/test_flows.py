# SPDX-License-Identifier: Apache-2.0
"""Flows over the loopback: what is sent, when, and what each end says of it."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

Arrivals = Callable[..., list[tuple[float, int]]]
MS = 10**6
LATE_NS = 10 * 10**9
"""How late a busy machine may make an end.  A write is never early; how late it is, is not asked."""


def before(found: list[tuple[float, int]], second: float) -> int:
    """Bytes that arrived before a time of the flow."""
    return sum(size for at, size in found if at < second)


@pytest.mark.parametrize("blocking", ["on", "off"])
@pytest.mark.parametrize("reverse", ["on", "off"])
@pytest.mark.parametrize("size", [1, 8191, 3_000_001])
def test_every_byte_is_checked(runner: Any, blocking: str, reverse: str, size: int) -> None:
    client, server = runner.flow(bytes=size, parallel=3, verify="on", seed=5, blocking=blocking, reverse=reverse)
    sender, receiver = (server, client) if reverse == "on" else (client, server)
    assert (sender["role"], receiver["role"]) == ("sender", "receiver")
    assert [c["conn"] for c in receiver["connections"]] == [0, 1, 2]
    for sent, got in zip(sender["connections"], receiver["connections"], strict=True):
        assert (sent["bytes_sent"], got["bytes_received"]) == (size, size)
        assert (got["verified"], got["bad_offset"], sent["verified"]) == (True, None, None)
        assert sent["local_port"] == got["remote_port"]
        assert sender["start_ns"] <= (sent["begin_ns"] or got["begin_ns"]) <= got["connect_ns"]
        assert got["connect_ns"] <= got["first_byte_ns"] <= got["last_byte_ns"] <= got["closed_ns"]
        assert sent["fct_ns"] == sent["closed_ns"] - sender["start_ns"]


@pytest.mark.parametrize("lowat", [0, 1, 100_000, 10_000_000])
@pytest.mark.parametrize("blocking", ["on", "off"])
def test_the_last_bytes_wake_the_receiver(runner: Any, lowat: int, blocking: str) -> None:
    _, server = runner.flow(bytes=1_234_567, lowat=lowat, blocking=blocking)
    assert server["connections"][0]["bytes_received"] == 1_234_567


@pytest.mark.parametrize("blocking", ["on", "off"])
def test_a_known_number_of_bytes_needs_no_end_of_file(runner: Any, blocking: str) -> None:
    port = runner.free_ports()
    process, out = runner.end("serve", server_port=port, bytes=50_000, blocking=blocking)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(bytes(50_000))
        runner.has_read(port)
        time.sleep(0.2)
    _, _, result = runner.finish(process, out)
    got = result["connections"][0]
    assert got["closed_ns"] - got["last_byte_ns"] > 100 * MS


def test_a_duration_ends_on_time_although_the_socket_is_full(runner: Any) -> None:
    now = time.time_ns()
    client, server = runner.flow(start_ns=now + 100 * MS, end_ns=now + 400 * MS)
    sent, got = client["connections"][0], server["connections"][0]
    assert sent["bytes_sent"] == got["bytes_received"] > 10**6
    assert 0 <= sent["last_byte_ns"] - (now + 400 * MS) < LATE_NS


def test_a_sender_whose_peer_does_not_read_ends_on_time(runner: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        now = time.time_ns()
        port = listener.getsockname()[1]
        process, out = runner.end("send", server_port=port, end_ns=now + 200 * MS, limit_ns=now + 3000 * MS)
        connection, _ = listener.accept()
        with connection:
            code, said, result = runner.finish(process, out)
    assert code == 1
    assert "before the end" in said
    assert 0 <= result["connections"][0]["last_byte_ns"] - (now + 200 * MS) < LATE_NS
    assert result["stopped"] is True


def test_schedule(arrivals: Arrivals) -> None:
    found = arrivals(pattern="schedule 0:20000B,150000000:10000B,300000000:5000B")
    assert before(found, 0.15) <= 20_000
    assert before(found, 0.3) <= 30_000
    assert before(found, 30) == 35_000


def test_stall_after_bytes(arrivals: Arrivals) -> None:
    found = arrivals(bytes=50_000, pattern="stall at 20000B for 1000000000")
    assert before(found, 1) <= 20_000
    assert 20_000 in itertools.accumulate(size for _, size in found)
    assert before(found, 30) == 50_000


def test_stall_at_a_time(arrivals: Arrivals) -> None:
    found = arrivals(bytes=40_000, rate=1_600_000, burst=2000, pattern="stall at 100000000 for 200000000")
    assert before(found, 0.3) <= 22_000
    assert before(found, 30) == 40_000


def test_on_off(arrivals: Arrivals) -> None:
    found = arrivals(bytes=60_000, rate=1_600_000, burst=2000, pattern="on-off 100000000/100000000")
    assert before(found, 0.2) <= 22_000
    assert before(found, 0.4) <= 44_000
    assert before(found, 30) == 60_000


def test_on_off_stops_a_write_that_is_blocked(runner: Any) -> None:
    """The only phase ends inside a write, because the socket is always full."""
    start_ns = time.time_ns() + 3000 * MS  # on a busy machine a nearer phase is over when the programs have begun
    client, _ = runner.flow(
        start_ns=start_ns, end_ns=start_ns + 2 * 10**9, pattern="on-off 200000000/10000000000", notsent_lowat=100_000
    )
    sent = client["connections"][0]
    assert 200 * MS <= sent["last_byte_ns"] - start_ns < 2 * 10**9
    assert sent["closed_ns"] - start_ns >= 2 * 10**9


def test_rate_and_burst(arrivals: Arrivals) -> None:
    found = arrivals(bytes=50_000, rate=1_000_000, burst=12_500)
    for tick in (1, 2, 3):
        assert before(found, tick / 10) <= tick * 12_500
    assert before(found, 30) == 50_000


def test_write_size(runner: Any) -> None:
    client, _ = runner.flow(bytes=1000, write_size=100)
    assert client["connections"][0]["writes"] == 10


def test_socket_options_are_set_and_said(runner: Any) -> None:
    client, server = runner.flow(
        bytes=1000, cc="reno", send_buffer=50_000, receive_buffer=60_000, nodelay="on", keepalive=10**9,
        user_timeout=5 * 10**9,
    )  # fmt: skip
    for side in (client, server):
        found = side["connections"][0]
        assert (found["cc"], found["send_buffer"], found["receive_buffer"]) == ("reno", 100_000, 120_000)
    assert client["connections"][0]["tcp_info"]["delivered"] > 0


def test_ipv6(runner: Any) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    _, server = runner.flow(address="::1", bytes=1000, verify="on")
    assert server["connections"][0]["verified"] is True


def test_a_client_without_fixed_ports(runner: Any) -> None:
    client, server = runner.flow(client_port=0, bytes=1000, parallel=2)
    assert [c["bytes_sent"] for c in client["connections"]] == [1000, 1000]
    assert {c["remote_port"] for c in server["connections"]} == {c["local_port"] for c in client["connections"]}
