# SPDX-License-Identifier: Apache-2.0
"""Run the traffic program over the loopback: both ends, or one against a socket of Python's."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.generators import tgen

Json = dict[str, Any]
LOOPBACK = "127.0.0.1"
LIMIT_S = 120
"""How long an end may take: a guard, not a measurement."""
PORTS = "TESTCTL_TEST_PORTS"
"""In the environment: the first port of these tests, where they run beside themselves."""
_blocks = itertools.count(int(os.environ.get(PORTS, 20000)) + os.getpid() % 80 * 100, 4)


def free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def connections(port: int) -> list[tuple[str, str]]:
    """The local port and the queues of each end of the connections with a TCP port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    about = [row for row in rows if f":{port:04X}" in (row[1][8:], row[2][8:]) and row[3] == "01"]
    return [(row[1][9:], row[4]) for row in about]


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for what has to happen, however busy the machine is."""
    for _ in range(LIMIT_S * 100):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {LIMIT_S} s")


class Tgen:
    """Starts ends, by the program `before` if any; what still runs at the end of a test is killed."""

    before: Sequence[str] = ()

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.started: list[subprocess.Popen[str]] = []
        assert not tgen.unavailable(), tgen.unavailable()

    def free_ports(self) -> int:
        """The first of four ports that nobody uses, below those the kernel hands out."""
        return next(port for port in _blocks if all(free(port + n) for n in range(4)))

    def start(self, *words: str) -> subprocess.Popen[str]:
        argv, pipe = [*self.before, tgen.binary(), *words], subprocess.PIPE
        process = subprocess.Popen(argv, stdout=pipe, stderr=pipe, stdin=subprocess.DEVNULL, text=True)
        self.started.append(process)
        return process

    def end(self, side: str, **options: object) -> tuple[subprocess.Popen[str], Path]:
        """One end, started; a server is listening."""
        out = self.workdir / f"{side}.json"
        given = {"out": out, "address": LOOPBACK, "limit_ns": time.time_ns() + LIMIT_S * 10**9} | options
        process = self.start(side, *(f"{key}={value}" for key, value in given.items()))
        if side == "serve":
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said == "ready\n", process.stderr.read() if process.stderr else ""
        return process, out

    def waits(self, process: subprocess.Popen[str]) -> None:
        """Wait until a signal no longer ends a program by itself: its connections' threads are there, and block it."""

        def blocked(status: Path) -> bool:
            (mask,) = re.findall(r"^SigBlk:\s*([0-9a-f]+)$", status.read_text(encoding="ascii"), re.MULTILINE)
            return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1)

        tasks = Path(f"/proc/{process.pid}/task")
        until(lambda: any(blocked(status) for status in tasks.glob("*/status")), "the wait for signals")

    def has_read(self, port: int) -> None:
        """Wait until the program has taken all bytes from its accepted connection's socket."""

        def empty() -> bool:
            found = connections(port)
            return len(found) == 2 and all(queues == "00000000:00000000" for _, queues in found)

        until(empty, "the end of the reading")

    def finish(self, process: subprocess.Popen[str], out: Path) -> tuple[int, str, Json]:
        """Exit code, standard error and result of an end."""
        _, said = process.communicate(timeout=2 * LIMIT_S)
        return process.returncode, said, json.loads(out.read_text()) if out.exists() else {}

    def flow(self, **options: object) -> tuple[Json, Json]:
        """Both ends to their good end: results of client and server."""
        ports = self.free_ports()
        given = {"server_port": ports + 3, "client_port": ports} | options
        server = self.end("serve", **given)
        client = self.end("send", bind=given.get("address", LOOPBACK), **given)
        results = []
        for process, out in (client, server):
            code, said, result = self.finish(process, out)
            assert (code, said, result["error"]) == (0, "", None)
            results.append(result)
        return results[0], results[1]

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Tgen]:
    made = Tgen(tmp_path)
    yield made
    made.close()


@pytest.fixture
def arrivals(runner: Tgen) -> Callable[..., list[tuple[float, int]]]:
    """Send to a socket of ours: (seconds since the flow's start, bytes) of every read."""

    def run(**options: object) -> list[tuple[float, int]]:
        start_ns = time.time_ns() + 100_000_000
        with closing(socket.create_server((LOOPBACK, 0))) as listener:
            given = {"server_port": listener.getsockname()[1], "start_ns": start_ns} | options
            process, out = runner.end("send", **given)
            listener.settimeout(LIMIT_S)
            connection, _ = listener.accept()
            found = []
            with connection:
                while data := connection.recv(1 << 20):
                    found.append(((time.time_ns() - start_ns) / 1e9, len(data)))
        code, said, result = runner.finish(process, out)
        assert (code, said) == (0, "")
        assert sum(n for _, n in found) == result["connections"][0]["bytes_sent"]
        return found

    return run
