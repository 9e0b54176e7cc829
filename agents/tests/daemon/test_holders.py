# SPDX-License-Identifier: Apache-2.0
"""Holders as processes of their own: one that is stopped and goes on, one that is cut off in one direction, a slow one.

Each sets the rate of a switch's port to numbers of its own, again and again; the agent takes none after its lease.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from agents.tests.daemon.daemons import SWITCH, Caller, calling, running, written
from agents.tests.daemon.test_lease import until

ROOT = Path(__file__).parents[3]
LEASE_S = 3.0
FIRST, SECOND = 10**9, 2 * 10**9
HOLDER = """
import sys, time
import grpc
from agents.tests.daemon.daemons import calling
address, lease_s, rate = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
with calling(address) as caller:
    caller.acquire(f"holder {rate}", lease_s)
    print("has it", flush=True)
    number = 0
    try:
        while True:
            number += 1
            caller.set_rate(rate + number)
            print("set", number, flush=True)
            caller.call("Renew")
            time.sleep(0.05)
    except grpc.RpcError as error:
        print(error.details(), flush=True)
"""


@pytest.fixture
def address(tmp_path: Path, rig: ExitStack) -> str:
    """The configuration of a switch's agent with leases."""
    rig.enter_context(running(written(tmp_path, **SWITCH)))
    return f"unix:{tmp_path}/alpha.sock"


@contextmanager
def holder(address: str, rate: int, lease_s: float = LEASE_S) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-c", HOLDER, address, str(lease_s), str(rate)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def last_words(process: subprocess.Popen[str]) -> str:
    """Behind what it had reported before it was held up."""
    while (words := said(process)).startswith("set"):
        pass
    return words


def next_holder(address: str, rig: ExitStack) -> Caller:
    """One that asks until it has the lease, and sets the rate of its own."""
    caller = rig.enter_context(calling(address))
    until(lambda: caller.acquired(30.0))
    assert caller.rate() == "none"  # the one before is restored
    caller.set_rate(SECOND)
    return caller


class Between:
    """A forwarder to an address; what goes `up` or `down` can be held back, or late."""

    def __init__(self, where: Path, to: Path) -> None:
        self.passes = {"up": threading.Event(), "down": threading.Event()}
        self.late_s = 0.0
        for passing in self.passes.values():
            passing.set()
        self._to = str(to)
        self._open: list[socket.socket] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(where))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket(socket.AF_UNIX)
                self._open += near, far
                far.connect(self._to)
                for way, source, sink in (("up", near, far), ("down", far, near)):
                    line: queue.Queue[tuple[float, bytes]] = queue.Queue()
                    threading.Thread(target=self._take, args=(source, line), daemon=True).start()
                    threading.Thread(target=self._give, args=(way, line, sink), daemon=True).start()

    def _take(self, source: socket.socket, line: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:  # closed
                data = b""
            line.put((time.monotonic() + self.late_s, data))

    def _give(self, way: str, line: queue.Queue[tuple[float, bytes]], sink: socket.socket) -> None:
        data = b"-"
        while data:
            due, data = line.get()
            time.sleep(max(due - time.monotonic(), 0.0))
            self.passes[way].wait()
            with suppress(OSError):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for passing in self.passes.values():
            passing.set()
        self._server.close()
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def between(tmp_path: Path, address: str, rig: ExitStack) -> Between:
    made = Between(tmp_path / "between.sock", tmp_path / "alpha.sock")
    rig.callback(made.close)
    return made


def test_one_that_is_stopped_and_goes_on(address: str, rig: ExitStack) -> None:
    with holder(address, FIRST) as process:
        assert said(process) == "has it"
        assert said(process) == "set 1"
        process.send_signal(signal.SIGSTOP)
        caller = next_holder(address, rig)
        process.send_signal(signal.SIGCONT)
        assert "switch s1: " in last_words(process)
        assert caller.rate() == SECOND


@pytest.mark.parametrize("way", ["up", "down"])
def test_one_that_is_cut_off_in_one_direction(
    tmp_path: Path, address: str, between: Between, rig: ExitStack, way: str
) -> None:
    with holder(f"unix:{tmp_path}/between.sock", FIRST) as process:
        assert said(process) == "has it"
        assert said(process) == "set 1"
        between.passes[way].clear()
        caller = next_holder(address, rig)
        between.passes[way].set()  # what was under way arrives now
        assert "switch s1: " in last_words(process)
        assert caller.rate() == SECOND


def test_one_whose_calls_all_come_too_late(tmp_path: Path, address: str, between: Between, rig: ExitStack) -> None:
    between.late_s = 1.0
    with holder(f"unix:{tmp_path}/between.sock", FIRST, lease_s=0.5) as process:
        assert said(process) == "has it"
        assert "switch s1: Apply wants a lease; the one given has ended" in said(process)
    assert next_holder(address, rig).rate() == SECOND
