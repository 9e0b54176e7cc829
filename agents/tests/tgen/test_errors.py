# SPDX-License-Identifier: Apache-2.0
"""Nothing fails silently: each error is in the result, on standard error and in the exit code."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from agents.tests.tgen.conftest import connections

GOOD = {"server_port": 5001}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"parallel": "65"}, "parallel: want a whole number from 1 to 64; got '65'"),
        ({"bytes": "-1"}, f"bytes: want a whole number from 0 to {(2**63 - 1) // 4}; got '-1'"),
        ({"bytes": "1k"}, f"bytes: want a whole number from 0 to {(2**63 - 1) // 4}; got '1k'"),
        ({"nodelay": "yes"}, "nodelay: want on or off; got 'yes'"),
        ({"nodelay": 'a"b\\c'}, "nodelay: want on or off; got 'a\"b\\c'"),
        ({"address": "localhost"}, "address: want an IPv4 or IPv6 address; got 'localhost'"),
        ({"bind": "::1"}, "bind: want the family of address 127.0.0.1; got '::1'"),
        ({"speed": "1"}, "want key=value with a known key; got 'speed=1'"),
        ({"cc": "a" * 16}, f"cc: want 1 to 15 characters; got '{'a' * 16}'"),
        ({"server_port": "0"}, "server_port: want a whole number from 1 to 65535; got '0'"),
        ({"client_port": "65535", "parallel": "2"}, "client_port: 65535 and 2 connections end above 65535"),
        ({"verify": "on"}, "verify: wants client_port, by which connections are told apart"),
        ({"burst": "100"}, "burst: wants a rate"),
        ({"read_pause": "5-5"}, "read_pause: want NS-NS,... after the start: reads nothing; got '5-5'"),
        ({"read_pause": "5-6,"}, "read_pause: want NS-NS,... after the start: reads nothing; got '5-6,'"),
        ({"read_pause": "5-7,6-8"}, "read_pause: want NS-NS,... after the start: reads nothing; got '5-7,6-8'"),
        ({"keepalive": "1500000000"}, "keepalive: want whole seconds; got 1500000000 ns"),
        ({"user_timeout": "1500"}, "user_timeout: want whole milliseconds; got 1500 ns"),
    ],
)
def test_bad_options(runner: Any, words: dict[str, str], error: str) -> None:
    process, out = runner.end("send", **(GOOD | words))
    code, said, result = runner.finish(process, out)
    assert (code, said) == (2, f"tgen send: {error}\n")
    assert (result["error"], result["connections"]) == (error, [])


@pytest.mark.parametrize(
    "pattern",
    ["", "greed", "on-off 1", "on-off 0/5", "on-off 5/0", "on-off 5/5x", "stall at 5", "stall at 0B for 5", "schedule ",
     "schedule 0:5", "schedule 5:1B,4:1B", "schedule 0:1B,", "on-off 99999999999999999/1", "schedule 0:0B"],
)  # fmt: skip
def test_bad_patterns(runner: Any, pattern: str) -> None:
    code, said, _ = runner.finish(*runner.end("send", pattern=pattern, **GOOD))
    assert code == 2
    assert said.endswith(f"; got '{pattern}'\n")


@pytest.mark.parametrize("missing", ["address", "server_port"])
def test_missing_options(runner: Any, missing: str) -> None:
    words = {"address": "127.0.0.1", "server_port": "5001"}
    process = runner.start("send", *(f"{key}={value}" for key, value in words.items() if key != missing))
    assert process.communicate() == ("", f"tgen send: {missing}: is missing\n")


def test_unknown_subcommand(runner: Any) -> None:
    process = runner.start("sendd")
    _, said = process.communicate()
    assert process.returncode == 2
    assert said.startswith("tgen: want serve, send, sample, drain, at or help; got 'sendd'\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("map_id=1", "record_bytes=8"), 2, "out: is missing"),
        (("out=x", "map_id=0"), 2, "want out, map_id or record_bytes (8 to 4096); got 'map_id=0'"),
    ],
)
def test_drain(runner: Any, words: tuple[str, ...], code: int, said: str) -> None:
    process = runner.start("drain", *words)
    assert process.communicate() == ("", f"tgen drain: {said}\n")
    assert process.returncode == code


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_refused(runner: Any) -> None:
    port = closed_port()
    code, said, result = runner.finish(*runner.end("send", server_port=port))
    error = f"connect 127.0.0.1:{port}: ECONNREFUSED (Connection refused)"
    assert (code, said) == (1, f"tgen send: connection 0: {error}\n")
    assert (result["error"], result["connections"][0]["error"]) == (f"connection 0: {error}", error)
    assert (result["connections"][0]["connect_ns"], result["connections"][0]["failure"]) == (None, "ECONNREFUSED")


def test_address_in_use(runner: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        process = runner.start("serve", "address=127.0.0.1", f"server_port={port}", f"out={runner.workdir / 'out'}")
        _, said = process.communicate(timeout=120)
    error = f"bind 127.0.0.1:{port}: EADDRINUSE (Address already in use)"
    assert (process.returncode, said) == (1, f"tgen serve: {error}\n")
    assert json.loads((runner.workdir / "out").read_text())["error"] == error


def test_unknown_congestion_control(runner: Any) -> None:
    _, said, _ = runner.finish(*runner.end("send", cc="nonesuch", **GOOD))
    assert said == "tgen send: connection 0: cc nonesuch: ENOENT (No such file or directory)\n"


def test_result_that_cannot_be_written(runner: Any, tmp_path: Path) -> None:
    out = tmp_path / "none" / "out.json"
    code, said, _ = runner.finish(*runner.end("send", out=out, server_port=closed_port()))
    assert code == 1
    assert f"tgen: can't write {out}: ENOENT (No such file or directory)\n" in said


def test_unexpected_client(runner: Any) -> None:
    process, out = runner.end("serve", server_port=(port := closed_port()), client_port=10)
    with socket.create_connection(("127.0.0.1", port)) as client:
        code, said, _ = runner.finish(process, out)
        ours = client.getsockname()[1]
    assert (code, said) == (1, f"tgen serve: connection -1: accept: want client port 10 to 10; got {ours}\n")


@pytest.mark.parametrize(
    ("sent", "error", "failure"),
    [(500, "want 1000 bytes; got 500", "incomplete"), (1001, "want 1000 bytes; got 1001", None)],
)
def test_wrong_number_of_bytes(runner: Any, sent: int, error: str, failure: str | None) -> None:
    process, out = runner.end("serve", server_port=(port := closed_port()), bytes=1000)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(bytes(sent))
    code, said, result = runner.finish(process, out)
    assert (code, said) == (1, f"tgen serve: connection 0: {error}\n")
    assert (result["connections"][0]["complete"], result["connections"][0]["failure"]) == (False, failure)


def test_reset_by_the_peer(runner: Any) -> None:
    process, out = runner.end("serve", server_port=(port := closed_port()))
    client = socket.create_connection(("127.0.0.1", port))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    _, said, result = runner.finish(process, out)
    assert said == "tgen serve: connection 0: recv after 0 bytes: ECONNRESET (Connection reset by peer)\n"
    assert result["connections"][0]["failure"] == "ECONNRESET"


def test_limit_without_a_client(runner: Any) -> None:
    process, out = runner.end("serve", server_port=closed_port(), limit_ns=time.time_ns() + 100_000_000, parallel=2)
    code, said, result = runner.finish(process, out)
    assert (code, said) == (1, "tgen serve: connection 0: accept: no connection arrived\n")
    assert result["stopped"] is True


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_stopped_while_it_receives(runner: Any, ending: signal.Signals) -> None:
    process, out = runner.end("serve", server_port=(port := closed_port()))
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(bytes(1000))
        runner.has_read(port)
        process.send_signal(ending)
        code, said, result = runner.finish(process, out)
    assert (code, said) == (1, "tgen serve: connection 0: stopped after 1000 bytes were read, before the end of file\n")
    assert (result["stopped"], result["connections"][0]["bytes_received"]) == (True, 1000)


def still_since(port: int) -> int:
    """Wait until a second passes in which a full sender's queues stay as they are; returns when it began."""
    before, since_ns = connections(port), time.time_ns()
    while time.time_ns() < since_ns + 10**9:
        time.sleep(0.05)
        now = connections(port)
        full = any(not queues.startswith("00000000:") for _, queues in now)
        if now != before or not full:
            before, since_ns = now, time.time_ns()
    return since_ns


def test_a_sender_that_is_stopped_says_since_when_nothing_moved(runner: Any) -> None:
    """Its peer reads nothing: every byte in flight has its ACK, and the rest waits for buffer space."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        start_ns = time.time_ns() + 100_000_000
        port = server.getsockname()[1]
        process, out = runner.end("send", server_port=port, start_ns=start_ns, bytes=10_000_000)
        with server.accept()[0]:
            still_ns = still_since(port)
            process.send_signal(signal.SIGTERM)
            code, said, result = runner.finish(process, out)
    assert result["connections"][0]["failure"] == "incomplete"
    found = re.fullmatch(
        r"tgen send: connection 0: stopped after \d+ bytes were written, before the end(?:: \d+ timeouts one after the "
        r"other, the next \d+ ms after the last)?; the last progress was (-?\d+\.\d{3}) s after the flow's start\n",
        said,
    )
    assert code == 1
    assert found, said
    assert -0.05 <= float(found[1]) <= (still_ns - start_ns) / 1e9


def test_stopped_before_the_start(runner: Any) -> None:
    process, out = runner.end("send", start_ns=time.time_ns() + 10**11, server_port=5001)
    runner.waits(process)
    process.send_signal(signal.SIGTERM)
    _, said, _ = runner.finish(process, out)
    assert said == "tgen send: connection 0: stopped before the flow's start\n"


def test_at_starts_a_program_at_its_time(runner: Any) -> None:
    start_ns = time.time_ns() + 200_000_000
    said, _ = runner.start("at", f"start_ns={start_ns}", "date", "+%s%N").communicate()
    assert 0 <= int(said) - start_ns < 60 * 10**9


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["at", "now", "date"], "tgen at: want start_ns=N and a program; got 'now'\n"),
        (["at"], "tgen at: want start_ns=N and a program; got ''\n"),
        (["at", "start_ns=0", "/nonesuch"], "tgen at: can't start /nonesuch: ENOENT (No such file or directory)\n"),
    ],
)
def test_at_errors(runner: Any, words: list[str], error: str) -> None:
    assert runner.start(*words).communicate() == ("", error)
