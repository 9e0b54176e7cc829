# SPDX-License-Identifier: Apache-2.0
"""iperf3 as a generator: its words, what it can't do, its results."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from testctl_agent.generators import iperf3, tgen
from testctl_agent.generators._options import defaults
from testctl_agent.generators._sockets import listens
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

DATA = Path(__file__).parent / "data"
BASE: dict[str, Value] = {
    "address": "10.0.0.2", "bind": "10.0.0.1", "server_port": 5001, "client_port": 40000, "start_ns": 10**9,
    "duration": 2 * 10**9,
}  # fmt: skip


def test_the_words_of_a_server() -> None:
    argv = ["iperf3", "--server", "--one-off", "--bind", "10.0.0.2", "--port", "5001", "--json"]
    assert iperf3.argv("server", BASE, Path("w")) == argv


def test_the_words_of_a_client() -> None:
    options = BASE | {"cc": "reno", "parallel": 3, "reverse": True, "nodelay": True, "rate": 10**6,
                      "send_buffer": 9000, "receive_buffer": 9000, "user_timeout": 10**9}  # fmt: skip
    assert iperf3.argv("client", options, Path("w")) == [
        tgen.binary(), "at", "start_ns=1000000000", "iperf3", "--client", "10.0.0.2", "--parallel", "3",
        "--bind", "10.0.0.1", "--cport", "40000", "--time", "2", "--length", "1048576", "--bitrate", "1000000",
        "--window", "9000", "--congestion", "reno", "--no-delay", "--reverse", "--snd-timeout", "1000",
        "--port", "5001", "--json",
    ]  # fmt: skip


def test_bytes_and_burst() -> None:
    options = {k: v for k, v in BASE.items() if k != "duration"} | {
        "bytes": 10_000, "rate": 10**6, "write_size": 100, "burst": 400,
    }  # fmt: skip
    text = " ".join(iperf3.argv("client", options, Path("w")))
    assert "--bytes 10000 --length 100 --bitrate 1000000/4" in text
    assert iperf3.refuses(options) == []


def test_defaults_are_not_refused() -> None:
    assert iperf3.refuses(defaults() | BASE) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"pattern": "schedule 0s:1kB"}, "pattern: it has no schedule"),
        ({"verify": True}, "verify: it does not check content"),
        ({"lowat": 1}, "lowat: it can't set SO_RCVLOWAT"),
        ({"notsent_lowat": 1}, "notsent_lowat: it can't set TCP_NOTSENT_LOWAT"),
        ({"keepalive": 10**9}, "keepalive: it can't set SO_KEEPALIVE"),
        ({"blocking": False}, "blocking: it has one way to call the kernel"),
        ({"send_buffer": 5000}, "send_buffer, receive_buffer: it sets both, to one size"),
        ({"send_buffer": 5000, "receive_buffer": 6000}, "send_buffer, receive_buffer: it sets both, to one size"),
        ({"duration": 15 * 10**8}, "duration: want whole seconds; got 1500000000 ns"),
        ({"bytes": 5}, "duration: it takes bytes or a duration, not both"),
        ({"bytes": 5, "duration": 0, "parallel": 2}, "bytes: it counts the sum of all parallel connections"),
        ({"write_size": 2**21}, "write_size: want at most 1048576 bytes; got 2097152"),
        ({"burst": 5}, "burst: wants a rate"),
        ({"burst": 5, "rate": 5}, "burst: want a multiple of write_size"),
    ],
)
def test_what_it_refuses(options: dict[str, Value], reason: str, tmp_path: Path) -> None:
    assert iperf3.refuses(BASE | options) == [reason]
    if not iperf3.unavailable():
        with pytest.raises(TestbedError, match=r"^iperf3 client: "):
            iperf3.task(BASE | options | {"side": "client"}, tmp_path)


def test_a_result_of_either_end() -> None:
    client = iperf3.parse((DATA / "iperf3_client.json").read_text(), "client")
    server = iperf3.parse((DATA / "iperf3_server.json").read_text(), "server")
    assert [(end["role"], end["bytes"]) for end in (client, server)] == [("sender", 1250000), ("receiver", 1250000)]
    (sent,), (got,) = client["connections"], server["connections"]
    assert (sent["local_port"], sent["remote_port"], sent["bytes_sent"], sent["retransmits"]) == (
        41800,
        5999,
        1250000,
        0,
    )
    assert (got["local_port"], got["remote_port"], got["bytes_received"]) == (5999, 41800, 1250000)


def test_a_result_that_says_an_error() -> None:
    with pytest.raises(TestbedError, match=r"^iperf3 client: unable to connect to server: Connection refused$"):
        iperf3.parse((DATA / "iperf3_refused.json").read_text(), "client")


def test_a_result_that_is_none() -> None:
    with pytest.raises(TestbedError, match=r"^iperf3 server: want JSON; got ''$"):
        iperf3.parse("", "server")


def test_who_listens() -> None:
    assert listens(5001, DATA)
    assert not listens(5002, DATA)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_both_ends_as_tasks(tmp_path: Path) -> None:
    options: dict[str, Value] = {
        "address": "127.0.0.1", "bind": "127.0.0.1", "server_port": 18501, "client_port": 18600, "bytes": 10**6,
        "start_ns": time.time_ns(), "parallel": 1,
    }  # fmt: skip
    results = []
    tasks = []
    for side in ("server", "client"):
        (tmp_path / side).mkdir()
        tasks.append(iperf3.task(options | {"side": side}, tmp_path / side))
        tasks[-1].start()
    for task in tasks:
        assert task.wait(120)
        results.append(task.result())
    assert results[0]["connections"][0]["remote_port"] == results[1]["connections"][0]["local_port"] == 18600


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_server_that_can_not_listen(tmp_path: Path) -> None:
    task = iperf3.task(BASE | {"address": "203.0.113.9", "server_port": 18502, "side": "server"}, tmp_path)
    with pytest.raises(TestbedError, match=r"^iperf3 server: ended before it was ready: "):
        task.start()
