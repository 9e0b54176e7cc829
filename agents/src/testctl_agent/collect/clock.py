# SPDX-License-Identifier: Apache-2.0
"""Measures the offset between the clocks of two hosts with packets in both directions, and the state of each clock.

UDP requests are numbered.  The kernel timestamps arrivals (SO_TIMESTAMPNS); the program timestamps departures just
before it sends.  That can only make the round trip longer and the error bound larger; the bound stays valid.

Options: side, port, seed (the same on both sides) and
    server  address its own; peer: the only address that it replies to
    client  address and bind; interval_ns; count of requests (0: until it is stopped); span_ns, after which no
            more are sent once there are MIN replies (0: all are sent)
    state   sends nothing: the state of this host's clock
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from testctl_agent.collect._clock_estimate import Exchange, estimate
from testctl_agent.collect._clock_state import clock_state
from testctl_agent.generators._datagrams import bound, canonical, token_of
from testctl_agent.generators._options import need
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import Result
from testctl_agent.tasks.thread_task import Running, ThreadTask

NAME = "clock"
PORT = 7408
COUNT, INTERVAL_NS = 100, 10**7
MAX_SAMPLES, MIN = 100_000, 16
_SO_TIMESTAMPNS = 35
_PACKET = struct.Struct("!4sB3xQIQQ")
_MAGIC, _REQUEST, _ANSWER = b"tclk", 1, 2
_TIMESPEC = struct.Struct("@ll")
_LOOK_S, _ANSWER_S = 0.005, 1.0


def pack(kind: int, token: int, number: int, arrived_ns: int = 0, left_ns: int = 0) -> bytes:
    """A request, or a reply with the far clock's two times."""
    return _PACKET.pack(_MAGIC, kind, token, number, arrived_ns, left_ns)


def unpack(data: bytes) -> tuple[int, int, int, int, int] | None:
    """(kind, token, number, arrived_ns, left_ns), or None for a packet of another program."""
    if len(data) != _PACKET.size:
        return None
    magic, *fields = _PACKET.unpack(data)
    kind, token, number, arrived_ns, left_ns = fields
    return (kind, token, number, arrived_ns, left_ns) if magic == _MAGIC else None


def receive(sock: socket.socket) -> tuple[bytes, int, tuple[str, int]]:
    """A packet, the kernel's time of its arrival, and who sent it.  TimeoutError when none comes."""
    data, extra, _, source = sock.recvmsg(2 * _PACKET.size, 256)
    for level, kind, value in extra:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, ns = _TIMESPEC.unpack_from(value)
            return data, seconds * 10**9 + ns, source[:2]
    raise TestbedError("the kernel gives no time of arrival (SO_TIMESTAMPNS)")


def _answer(sock: socket.socket, options: Mapping[str, Value], running: Running) -> Result:
    """The server: returns each request with its two times, until it is stopped."""
    token, answered = token_of(options), 0
    peer = canonical(str(options["peer"])) if options.get("peer") else ""
    sock.settimeout(_LOOK_S)
    running.ready.set()
    while not running.stop.is_set():
        try:
            data, arrived_ns, source = receive(sock)
        except TimeoutError:
            continue
        request = unpack(data)
        if request is None or request[:2] != (_REQUEST, token) or (peer and source[0] != peer):
            continue
        sock.sendto(pack(_ANSWER, token, request[2], arrived_ns, time.time_ns()), source)
        answered += 1
    return {"collector": NAME, "side": "server", "answered": answered, "state": asdict(clock_state())}


def _await(sock: socket.socket, to: tuple[str, int], token: int, number: int, t1: int) -> Exchange | None:
    """Wait for the reply to a request; None if none arrives within a second."""
    end = time.monotonic() + _ANSWER_S
    while (left := end - time.monotonic()) > 0:
        sock.settimeout(left)
        try:
            data, t4, source = receive(sock)
        except TimeoutError:
            return None
        reply = unpack(data)
        if reply is not None and source == to and reply[:3] == (_ANSWER, token, number):
            return Exchange(t1, reply[3], reply[4], t4)
    return None


def _ask(sock: socket.socket, options: Mapping[str, Value], running: Running) -> Result:
    """The client: sends a request every interval, then returns the estimate."""
    to = canonical(str(need(options, "address", NAME))), int(options.get("port", PORT))
    token, count = token_of(options), int(options.get("count", COUNT))
    interval_s = int(options.get("interval_ns", INTERVAL_NS)) / 1e9
    span_ns = int(options.get("span_ns", 0))
    exchanges: list[Exchange] = []
    running.ready.set()
    sent, begun = 0, time.monotonic_ns()

    def enough() -> bool:
        return bool(span_ns) and len(exchanges) >= MIN and time.monotonic_ns() - begun > span_ns

    while sent < (count or MAX_SAMPLES) and not running.stop.is_set() and not enough():
        sent += 1
        t1 = time.time_ns()
        sock.sendto(pack(_REQUEST, token, sent), to)
        if (exchange := _await(sock, to, token, sent, t1)) is not None:
            exchanges.append(exchange)
        if sent != count:
            running.stop.wait(interval_s)
    return _result(exchanges, sent, f"{to[0]}, UDP port {to[1]}")


def _result(exchanges: list[Exchange], sent: int, whom: str) -> Result:
    if not exchanges:
        raise TestbedError(f"no answer from {whom}, to {sent} requests")
    try:
        estimated = estimate(exchanges)
    except ValueError as error:
        raise TestbedError(f"the clocks were set while they were compared: {error}") from error
    result = {"collector": NAME, "side": "client", "source": "packets", "lost": sent - len(exchanges)}
    return result | asdict(estimated) | {"state": asdict(clock_state())}


def task(options: Mapping[str, Value], workdir: Path) -> ThreadTask:
    """One end, by options["side"].  The server runs until it is stopped."""
    side = str(need(options, "side", NAME))
    if side not in ("server", "client", "state"):
        raise TestbedError(f"{NAME}: want side server, client or state; got {side}")
    name = f"{NAME} {side}"
    address = "" if side == "state" else str(need(options, "address" if side == "server" else "bind", name))

    def work(running: Running) -> Result:
        if side == "state":
            return {"collector": NAME, "side": side, "state": asdict(clock_state())}
        with bound(address, int(options.get("port", PORT)) if side == "server" else 0, name) as sock:
            sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            return _answer(sock, options, running) if side == "server" else _ask(sock, options, running)

    return ThreadTask(name, work)
