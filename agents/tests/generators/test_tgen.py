# SPDX-License-Identifier: Apache-2.0
"""tgen as a generator: its words, its results, both ends as tasks."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from testctl_agent.generators import tgen
from testctl_agent.params import registry
from testctl_agent.params.flow import pattern, reader, workload
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Amount, Value
from testctl_agent.spec.units import Bytes, Duration, Rate
from testctl_agent.wire.results import FlowEnd

BASE: dict[str, Value] = {
    "address": "10.0.0.2", "bind": "10.0.0.1", "server_port": 5001, "client_port": 40000, "start_ns": 10**9, "seed": 4,
}  # fmt: skip


@pytest.fixture(autouse=True)
def binary(monkeypatch: pytest.MonkeyPatch) -> str:
    found = tgen.binary()
    monkeypatch.setenv("TESTCTL_TGEN", found)
    return found


def words(side: tgen.Side, **options: Value) -> dict[str, str]:
    argv = tgen.argv(side, BASE | options, Path("w"))
    assert argv[:2] == [tgen.binary(), "serve" if side == "server" else "send"]
    return dict(word.split("=", 1) for word in argv[2:])


def test_the_words_of_a_plain_flow() -> None:
    assert words("client", duration=Duration.parse("2s")) == {
        "out": "w/result.json", "address": "10.0.0.2", "bind": "10.0.0.1", "server_port": "5001",
        "client_port": "40000", "parallel": "1", "start_ns": "1000000000", "end_ns": "3000000000", "seed": "4",
        "write_size": "1048576", "notsent_lowat": "1048576", "pattern": "greedy", "nodelay": "off", "blocking": "on",
        "reverse": "off", "verify": "off",
    }  # fmt: skip


def test_a_server_binds_the_address() -> None:
    assert "bind" not in words("server")


def test_all_options_are_given_in_base_units() -> None:
    options: dict[str, Value] = {
        "bytes": Bytes.parse("3MB"), "send_buffer": Bytes(5000), "receive_buffer": Bytes(6000), "lowat": Bytes(100),
        "rate": Rate.parse("1gbit"), "burst": Bytes.parse("30kB"), "write_size": Bytes(7000), "nodelay": True,
        "keepalive": Duration.parse("2s"), "user_timeout": Duration.parse("1s"), "blocking": False, "cc": "reno",
        "reverse": True, "verify": True, "notsent_lowat": "none", "parallel": 3,
        "pattern": "stall at 20kB for 500ms", "limit_ns": 77, "keepalive_probes": 3, "read_rate": Rate.parse("1mbit"),
        "read_pause": "1s-2s; 3s-4s", "receive_buffer_later": "4kB at 2s",
    }  # fmt: skip
    found = words("client", **options)
    assert {name: found[name] for name in options if name in found} == {
        "bytes": "3000000", "send_buffer": "5000", "receive_buffer": "6000", "lowat": "100", "rate": "1000000000",
        "burst": "30000", "write_size": "7000", "nodelay": "on", "keepalive": "2000000000",
        "user_timeout": "1000000000", "blocking": "off", "cc": "reno", "reverse": "on", "verify": "on",
        "parallel": "3", "pattern": "stall at 20000B for 500000000", "limit_ns": "77",
        "keepalive_probes": "3", "read_rate": "1000000", "read_pause": "1000000000-2000000000,3000000000-4000000000",
    }  # fmt: skip
    assert (found["resize_ns"], found["resize_bytes"]) == ("2000000000", "4000")
    assert "notsent_lowat" in options.keys() - found.keys()


@pytest.mark.parametrize(
    ("options", "end_ns"),
    [
        ({"end_ns": 5 * 10**9, "duration": 10**9}, 5 * 10**9),
        ({"duration": 10**9}, 2 * 10**9),
        ({"bytes": 5}, 0),
        ({"bytes": 5, "duration": 10**9}, 2 * 10**9),
        ({"bytes": 5, "end_ns": 0}, 0),
        ({"pattern": "schedule 0s:5B"}, 0),
        ({"pattern": "on-off 1s/1s"}, 11 * 10**9),
        ({}, 11 * 10**9),
    ],
)
def test_when_a_flow_ends(options: dict[str, Value], end_ns: int) -> None:
    assert words("client", **options)["end_ns"] == str(end_ns)


@pytest.mark.parametrize("name", ["address", "side", "server_port"])
def test_an_option_that_is_missing(name: str, tmp_path: Path) -> None:
    options = {key: value for key, value in (BASE | {"side": "server"}).items() if key != name}
    with pytest.raises(TestbedError, match=f"{name}"):
        tgen.task(options, tmp_path).start()


def test_it_is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TESTCTL_TGEN", str(tmp_path / "tgen"))
    assert tgen.unavailable() == f"{tmp_path / 'tgen'} can't be executed"
    with pytest.raises(TestbedError, match="can't be executed"):
        tgen.task(BASE | {"side": "client"}, tmp_path)


def test_it_refuses_nothing() -> None:
    assert tgen.refuses(dict.fromkeys(registry.specs()["flow"], 1)) == []


def both_ends(tmp_path: Path, **options: Value) -> list[dict[str, object]]:
    given = BASE | {"address": "127.0.0.1", "bind": "127.0.0.1", "start_ns": time.time_ns()} | options
    tasks = []
    for side in ("server", "client"):
        (tmp_path / side).mkdir()
        tasks.append(tgen.task(given | {"side": side}, tmp_path / side))
        tasks[-1].start()
    assert all(task.wait(120) for task in tasks)
    assert all(task.files() == ["result.json"] for task in tasks)
    return [task.result() for task in tasks]


def test_both_ends_as_tasks(tmp_path: Path) -> None:
    server, client = both_ends(tmp_path, server_port=18001, client_port=18100, bytes=10_000, verify=True, parallel=2)
    assert (server["side"], server["role"], client["role"]) == ("server", "receiver", "sender")
    assert (server["bytes"], client["bytes"]) == (20_000, 20_000)
    assert json.dumps(server)


def test_a_connection_that_fails_is_a_result(tmp_path: Path) -> None:
    options = BASE | {"address": "127.0.0.1", "bind": "127.0.0.1", "server_port": 18002, "client_port": 18200}
    task = tgen.task(options | {"side": "client", "start_ns": 0}, tmp_path)
    with pytest.raises(TestbedError, match="has not started"):
        task.result()
    task.start()
    assert task.wait(120)
    found = task.result()
    assert found["error"].startswith("connection 0: connect 127.0.0.1:18002: ECONNREFUSED")
    (failed,) = FlowEnd.from_json(found).failures
    assert (failed.failure, time.time_ns() - 10**11 < (failed.failed_ns or 0) <= time.time_ns()) == (
        "ECONNREFUSED",
        True,
    )


def test_a_program_that_fails_by_itself_says_why(tmp_path: Path) -> None:
    options = BASE | {"address": "127.0.0.1", "bind": "203.0.113.9", "server_port": 18002, "client_port": 18200}
    task = tgen.task(options | {"side": "client", "start_ns": 0}, tmp_path)
    task.start()
    assert task.wait(120)
    with pytest.raises(TestbedError, match=r"^tgen client: connection 0: bind 203.0.113.9:18200: EADDRNOTAVAIL"):
        task.result()


def test_a_server_that_is_not_ready_says_why(tmp_path: Path) -> None:
    task = tgen.task(BASE | {"side": "server", "address": "203.0.113.9"}, tmp_path)
    with pytest.raises(TestbedError, match=r"ended before it was ready: .*bind 203.0.113.9:5001: EADDRNOTAVAIL"):
        task.start()


def test_a_task_that_is_stopped(tmp_path: Path) -> None:
    task = tgen.task(BASE | {"side": "server", "address": "127.0.0.1", "server_port": 18003}, tmp_path)
    task.start()
    assert not task.wait(0.01)
    with pytest.raises(TestbedError, match="has not ended"):
        task.result()
    task.stop()
    assert task.poll()
    found = task.result()
    assert (found["connections"][0]["failure"], found["error"]) == (
        "incomplete", "connection -1: accept: no connection arrived"
    )  # fmt: skip


def accepted(tmp_path: Path, word: str) -> bool:
    """Whether tgen takes a word: without an address it then complains of that."""
    (tmp_path / "stderr.txt").unlink(missing_ok=True)
    from testctl_agent.system.subprocesses import start

    start([tgen.binary(), "send", word], stderr=tmp_path / "stderr.txt").wait()
    return (tmp_path / "stderr.txt").read_text() == "tgen send: address: is missing\n"


NOT_ITS_OWN = {"start", "duration", "generator", *workload.SETS}
"""What requests are drawn from is not given to tgen: their schedule is."""


@pytest.mark.parametrize("name", sorted(set(registry.specs()["flow"]) - NOT_ITS_OWN - {"receive_buffer_later"}))
def test_tgen_takes_what_a_plan_may_say(name: str, tmp_path: Path) -> None:
    spec = registry.specs()["flow"][name]
    samples: list[object] = [spec.default] if spec.default is not None else []
    if isinstance(spec.type, Amount):
        samples = [spec.type.least, spec.type.most]
    if name == "pattern":
        samples = [pattern.base_units(text) for text in ("greedy", "on-off 1ns/1s", "stall at 0s for 1ns")]
    if name == "read_pause":
        samples = [reader.base_units(text) for text in ("0s-1ns", "1s-2s; 3s-1000000s")]
    if name == "cc":
        samples = ["a" * 15]
    for value in samples:
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
        if isinstance(value, int) and not isinstance(value, bool):
            text = str(int(value))
        assert accepted(tmp_path, f"{name}={text}") or name == "burst", text


def test_what_would_take_all_memory_is_refused(tmp_path: Path) -> None:
    most = {"write_size": Bytes(2**24), "parallel": 64}
    assert tgen.refuses(BASE | most) == []
    with pytest.raises(
        TestbedError, match=r"write_size: want at most 1073741824 bytes for all 64 connections; got 64000000000$"
    ):
        tgen.task(BASE | {"side": "client", "write_size": Bytes(10**9), "parallel": 64}, tmp_path)


def test_requests_are_handed_over_as_a_schedule(tmp_path: Path) -> None:
    options: dict[str, Value] = BASE | {
        "side": "client", "requests": 3, "sizes": "5:1", "arrival_rate": 1000.0, "stream": "1 web", "parallel": 10_000,
        "cc": "reno",
    }  # fmt: skip
    task = tgen.task(options, tmp_path)
    lines = [[int(word) for word in line.split()] for line in (tmp_path / tgen.REQUESTS).read_text().splitlines()]
    assert [line[1:] for line in lines] == [[0, 5, 0, 0], [1, 5, 0, 0], [2, 5, 0, 0]]
    assert dict(word.split("=", 1) for word in task.argv[2:]) == {
        "out": f"{tmp_path}/result.json", "address": "10.0.0.2", "bind": "10.0.0.1", "server_port": "5001",
        "client_port": "40000", "start_ns": "1000000000", "nodelay": "off", "cc": "reno", "write_size": "1048576",
        "notsent_lowat": "1048576", "requests": f"{tmp_path}/requests.txt", "times": f"{tmp_path}/times.bin",
        "reverse": "off",
    }  # fmt: skip
    assert list(task.outputs) == ["result.json", "times.bin"]
