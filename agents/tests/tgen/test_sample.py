# SPDX-License-Identifier: Apache-2.0
"""The sampler's file, read as its description says."""

from __future__ import annotations

import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

RECORD = struct.Struct("<QHHIII")
MS = 10**6


class Record(NamedTuple):
    time_ns: int
    local: int
    remote: int
    state: int
    cookie: int
    length: int
    info: bytes


def read(path: Path) -> list[Record]:
    data = path.read_bytes()
    magic, size = struct.unpack_from("<4sI", data)
    assert magic == b"TGI1"
    assert (len(data) - 8) % (RECORD.size + size) == 0

    def records() -> Iterator[Record]:
        for at in range(8, len(data), RECORD.size + size):
            head = at + RECORD.size
            yield Record._make((*RECORD.unpack_from(data, at), data[head : head + size]))

    return list(records())


def test_samples_of_two_connections(runner: Any, tmp_path: Path) -> None:
    out = tmp_path / "tcp_info.bin"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        accepted = [listener.accept()[0] for _ in range(2)]
        start_ns = time.time_ns() + 300 * MS
        words = (f"start_ns={start_ns}", f"end_ns={start_ns + 1000 * MS}", f"ports={port}", "interval_ns=200000000")
        process = runner.start("sample", f"out={out}", *words)
        assert process.communicate(timeout=120) == ("ready\n", "")
        ours = {s.getsockname()[1] for s in clients}
        for one in (*clients, *accepted):
            one.close()
    found = read(out)
    times = sorted({record.time_ns for record in found})
    assert 3 <= len(times) <= 6
    assert start_ns <= times[0]
    for at in times:
        pairs = [(r.local, r.remote) for r in found if r.time_ns == at]
        assert pairs == sorted(pairs)
        assert {min(pair) if max(pair) == port else max(pair) for pair in pairs} <= ours | {port}
        assert len(pairs) == 4
    for record in found:
        assert record.state == record.info[0] == 1
        assert 200 <= record.length <= len(record.info)
        assert not any(record.info[record.length :])
        assert struct.unpack_from("<I", record.info, 16)[0] > 500  # tcpi_snd_mss


def test_ports_select(runner: Any, tmp_path: Path) -> None:
    out = tmp_path / "tcp_info.bin"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            end_ns = time.time_ns() + 50 * MS
            words = (f"end_ns={end_ns}", "interval_ns=10000000", "ports=1-3,5")
            assert runner.start("sample", f"out={out}", *words).communicate(timeout=120) == ("ready\n", "")
    assert read(out) == []


def test_it_ends_when_asked(runner: Any, tmp_path: Path) -> None:
    out = tmp_path / "tcp_info.bin"
    process = runner.start("sample", f"out={out}", "interval_ns=1000000")
    assert process.stdout.readline() == "ready\n"
    assert not out.exists()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 0
    read(out)


def test_it_goes_on_after_a_pause(runner: Any, tmp_path: Path) -> None:
    out = tmp_path / "tcp_info.bin"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0]:
            start_ns = time.time_ns() + 300 * MS
            words = (f"start_ns={start_ns}", f"end_ns={start_ns + 1000 * MS}", f"ports={port}", "interval_ns=10000000")
            process = runner.start("sample", f"out={out}", *words)
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.05)
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=120)
            assert process.returncode == 0
    assert min(record.time_ns for record in read(out)) >= start_ns


KEYS = (
    "want out, interval_ns (at least 1000), start_ns, end_ns, ports (such as 5001-5004,6000) or family (inet or inet6)"
)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["interval_ns=1000"], "out: is missing"),
        (["out=x"], "interval_ns: is missing"),
        (["out=x", "interval_ns=999"], f"{KEYS}; got 'interval_ns=999'"),
        (["out=x", "interval_ns=1000", "ports=7-5"], f"{KEYS}; got 'ports=7-5'"),
        (["out=x", "interval_ns=1000", "ports="], f"{KEYS}; got 'ports='"),
        (["out=x", "interval_ns=1000", "family=ipx"], f"{KEYS}; got 'family=ipx'"),
        (["out=/nonesuch/x", "interval_ns=1000"], "can't write /nonesuch/x: ENOENT (No such file or directory)"),
    ],
)
def test_errors(runner: Any, words: list[str], error: str) -> None:
    assert runner.start("sample", *words).communicate(timeout=120) == ("", f"tgen sample: {error}\n")
