# SPDX-License-Identifier: Apache-2.0
"""Many requests on many connections over the loopback: one process an end."""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest

MS = 10**6


def times(path: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack("<qq", path.read_bytes()))


def asked(runner: Any, text: str) -> dict[str, Any]:
    """Options of both ends of the requests of a schedule."""
    schedule = runner.workdir / "requests.txt"
    schedule.write_text(text)
    port = runner.free_ports()
    return {"server_port": port + 3, "client_port": port, "requests": schedule}


def both(runner: Any, lines: list[tuple[int, ...]], **options: object) -> tuple[Any, Any]:
    """Both ends of these requests: (result, times) of the client and of the server."""
    given = asked(runner, "".join("{} {} {} {} {}\n".format(*line, *[0] * (5 - len(line))) for line in lines))
    given["start_ns"] = time.time_ns() + 100 * MS
    ends = [runner.end(side, times=runner.workdir / f"{side}.bin", **given, **options) for side in ("serve", "send")]
    found = []
    for side, (process, out) in zip(("serve", "send"), ends, strict=True):
        code, said, result = runner.finish(process, out)
        assert code == 0, said
        found.append((result, times(runner.workdir / f"{side}.bin")))
    return found[1], found[0]


def test_every_request_at_its_time_and_to_its_end(runner: Any) -> None:
    lines = [(0, 0, 1, 0), (3 * MS, 1, 3_000_000, 0), (4 * MS, 2, 5000, 0)]
    (client, begun), (server, ended) = both(runner, lines)
    assert (client["role"], server["role"]) == ("sender", "receiver")
    assert (client["done"], server["done"], client["bytes_sent"], server["bytes_received"]) == (3, 3, 3005001, 3005001)
    for (at, *_), (begin, _), (_, end) in zip(lines, begun, ended, strict=True):
        assert client["start_ns"] + at <= begin < end


def test_requests_of_one_connection_take_turns_and_are_answered(runner: Any) -> None:
    lines = [(0, 0, 200, 100_000), (0, 1, 10, 1), (1000, 0, 300, 2_000_000), (500 * MS, 0, 1, 1)]
    (client, seen), (server, _) = both(runner, lines)
    assert (client["role"], client["bytes_received"], server["bytes_received"]) == ("receiver", 2_100_002, 511)
    assert seen[0][0] < seen[0][1] <= seen[2][0] < seen[2][1]
    assert client["start_ns"] + 500 * MS <= seen[3][0] < seen[3][1]


def test_more_connections_at_once_than_files_by_default(runner: Any) -> None:
    runner.before = ["prlimit", "--nofile=8:100"]
    (client, _), (server, _) = both(runner, [(0, conn, 100, 1_000_000) for conn in range(3)])
    assert (client["done"], server["done"]) == (3, 3)


def test_a_client_thinks_after_each_answer(runner: Any) -> None:
    lines = [(0, 0, 10, 5000, 0), (0, 0, 10, 5000, 30 * MS), (0, 0, 10, 5000, 1)]
    (_, seen), _ = both(runner, lines)
    assert seen[0][1] + 30 * MS <= seen[1][0]
    assert seen[1][1] < seen[2][0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file has none"),
        ("5 0 1 0 0\n4 1 1 x 0\n", "line 2: want AT CONNECTION UP DOWN THINK, at most 30000 lines"),
        ("0 0 0 9 0\n", "line 1: want AT"),
        ("0 0 1 0\n", "line 1: want AT"),
        ("0 0 1 0 7 7\n", "line 1: want AT"),
        ("0 30000 1 0 0\n", "line 1: want AT"),
        ("0 1 1 0 0\n", "connection 0 has none"),
    ],
)
def test_a_schedule_that_is_none(runner: Any, text: str, why: str) -> None:
    process, out = runner.end("send", **asked(runner, text))
    code, said, result = runner.finish(process, out)
    assert (code, result["error"].startswith(f"requests: {why}")) == (1, True), said


def test_an_end_that_closes_early_is_an_error(runner: Any) -> None:
    options = asked(runner, "0 0 1000 0 0\n")
    process, out = runner.end("serve", **options)
    server, mine = (("127.0.0.1", options[name]) for name in ("server_port", "client_port"))
    with socket.create_connection(server, source_address=mine) as client:
        client.sendall(bytes(400))
    code, said, result = runner.finish(process, out)
    assert (code, result["done"]) == (1, 0)
    assert "connection 0: the other end closed it 600 bytes before the end of a request" in said


def test_what_has_not_ended_by_the_limit_is_counted(runner: Any) -> None:
    options = asked(runner, "0 0 10 0 0\n60000000000 1 10 0 0\n") | {"limit_ns": time.time_ns() + 3000 * MS}
    server = runner.end("serve", **options)
    client = runner.end("send", **options)
    for process, out in (client, server):
        code, said, result = runner.finish(process, out)
        assert (code, result["stopped"], result["done"]) == (1, True, 1)
        assert json.dumps(result["error"]) == '"stopped: 1 of 2 requests have not ended"', said


def test_what_is_written_and_not_read_by_the_limit_is_named(runner: Any) -> None:
    options = asked(runner, "0 0 10 0 0\n")
    with socket.create_server(("127.0.0.1", options["server_port"])):
        process, out = runner.end("send", **options, limit_ns=time.time_ns() + 500 * MS)
        code, said, result = runner.finish(process, out)
    assert (code, result["stopped"], result["done"]) == (1, True, 1), said
    assert result["error"] == "stopped: all 1 requests are written, and 1 connections not closed yet by the other end"
