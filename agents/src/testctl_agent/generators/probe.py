# SPDX-License-Identifier: Apache-2.0
"""Tests whether IP packets of a size pass between two hosts in each direction, and finds the largest that do.

UDP with DF.  A request contains the size of its reply, so that each direction is tested separately, with small
packets in the other.  A size that is lost `tries` times does not pass.

Options: side, address, port, seed (the same on both sides) and
    server  address its own; peer: the only address that it replies to
    client  address and bind; bytes: the size of the whole IP packet; tries; timeout_ns of the first reply
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.generators._datagrams import HEADERS, bound, canonical, never_fragment, sent, token_of
from testctl_agent.generators._options import need
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value
from testctl_agent.tasks.task import Result
from testctl_agent.tasks.thread_task import Running, ThreadTask

NAME = "probe"
PORT = 7407
MIN, MAX = 128, 65535
_REQUEST, _ANSWER, _TOO_LARGE = 1, 2, 3
_HEAD = struct.Struct("!4sBxHQI")
_MAGIC = b"tprb"
_LOOK_S, _MIN_WAIT_S = 0.005, 0.1


@dataclass(frozen=True)
class Message:
    """One packet.  size: of the requested reply, or of the received request (IP packet, bytes)."""

    kind: int
    size: int
    token: int
    number: int

    def packed(self, payload_bytes: int) -> bytes:
        head = _HEAD.pack(_MAGIC, self.kind, self.size, self.token, self.number)
        return head + bytes(max(payload_bytes - len(head), 0))


def unpacked(data: bytes) -> Message | None:
    """The message in a payload, or None for a packet of another program."""
    if len(data) < _HEAD.size:
        return None
    magic, kind, size, token, number = _HEAD.unpack_from(data)
    return Message(kind, size, token, number) if magic == _MAGIC else None


def largest(passes: Callable[[int], bool], least: int, most: int) -> int:
    """The largest size that passes, from `least` (which passes) to `most`, by bisection."""
    if passes(most):
        return most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if passes(middle) else (least, middle)
    return least


def _answer(sock: socket.socket, options: Mapping[str, Value], running: Running) -> Result:
    """The server: one reply of the requested size to each request, until it is stopped."""
    token, answered = token_of(options), 0
    peer = canonical(str(options["peer"])) if options.get("peer") else ""
    headers = HEADERS[sock.family]
    sock.settimeout(_LOOK_S)
    running.ready.set()
    while not running.stop.is_set():
        try:
            data, source = sock.recvfrom(MAX)
        except TimeoutError:
            continue
        request = unpacked(data)
        if request is None or request.kind != _REQUEST or request.token != token or (peer and source[0] != peer):
            continue
        reply = Message(_ANSWER, len(data) + headers, token, request.number)
        if not sent(sock, reply.packed(request.size - headers), source):
            sent(sock, Message(_TOO_LARGE, request.size, token, request.number).packed(0), source)
        answered += 1
    return {"generator": NAME, "side": "server", "error": None, "answered": answered}


@dataclass
class _Client:
    """Sends requests, and waits for replies."""

    sock: socket.socket
    to: tuple[str, int]
    token: int
    tries: int
    wait_s: float
    running: Running
    number: int = 0

    def passes(self, forward: int, backward: int) -> bool:
        """Whether a request of size `forward` gets a reply of size `backward`."""
        for _ in range(self.tries):
            if self.running.stop.is_set():
                raise TestbedError("was stopped")
            self.number += 1
            request = Message(_REQUEST, backward, self.token, self.number)
            if not sent(self.sock, request.packed(forward - HEADERS[self.sock.family]), self.to):
                return False
            arrived = self._await(self.number)
            if arrived is not None:
                return arrived
        return False

    def _await(self, number: int) -> bool | None:
        """Wait for a reply; None if none arrives in time."""
        end = time.monotonic() + self.wait_s
        while (left := end - time.monotonic()) > 0:
            self.sock.settimeout(left)
            try:
                data, source = self.sock.recvfrom(MAX)
            except TimeoutError:
                return None
            reply = unpacked(data)
            if reply is not None and source[:2] == self.to and (reply.token, reply.number) == (self.token, number):
                return reply.kind == _ANSWER
        return None


def _ask(sock: socket.socket, options: Mapping[str, Value], running: Running) -> Result:
    """The client: tests the smallest size, then the requested size, then finds the largest."""
    address, port, size = canonical(str(need(options, "address", NAME))), int(options.get("port", PORT)), _size(options)
    timeout_s = int(options.get("timeout_ns", 10**9)) / 1e9
    client = _Client(sock, (address, port), token_of(options), int(options.get("tries", 3)), timeout_s, running)
    running.ready.set()
    begun = time.monotonic()
    if not client.passes(MIN, MIN):
        raise TestbedError(f"no answer from {address}, UDP port {port}, to packets of {MIN} bytes")
    client.wait_s = min(timeout_s, max(_MIN_WAIT_S, 4 * (time.monotonic() - begun)))
    forward = largest(lambda n: client.passes(n, MIN), MIN, size)
    backward = largest(lambda n: client.passes(MIN, n), MIN, size)
    return report(str(need(options, "bind", NAME)), address, size, forward, backward)


def report(near: str, far: str, size: int, forward: int, backward: int) -> Result:
    """The client's result; `why` is a message for the user, empty if the size passes both ways."""
    ways = ((near, far, forward), (far, near, backward))
    why = "; ".join(
        f"from {a} to {b} packets of {size} bytes do not arrive, the largest that do have {most}"
        for a, b, most in ways
        if most < size
    )
    return {
        "generator": NAME, "side": "client", "error": None, "bytes": size, "passes": not why, "why": why,
        "largest_forward": forward, "largest_backward": backward, "largest": min(forward, backward),
    }  # fmt: skip


def _size(options: Mapping[str, Value]) -> int:
    size = int(need(options, "bytes", NAME))
    if not MIN <= size <= MAX:
        raise TestbedError(f"{NAME}: want bytes from {MIN} to {MAX}; got {size}")
    return size


def task(options: Mapping[str, Value], workdir: Path) -> ThreadTask:
    """One end, by options["side"].  The server runs until it is stopped."""
    is_server = need(options, "side", NAME) == "server"
    name = f"probe {'server' if is_server else 'client'}"
    if not is_server:
        _size(options)
    address = str(need(options, "address" if is_server else "bind", name))

    def work(running: Running) -> Result:
        with bound(address, int(options.get("port", PORT)) if is_server else 0, name) as sock:
            never_fragment(sock)
            return _answer(sock, options, running) if is_server else _ask(sock, options, running)

    return ThreadTask(name, work)
