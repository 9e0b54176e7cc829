# SPDX-License-Identifier: Apache-2.0
"""The path's MTU by probe: on loopback, and as root through a router with a smaller MTU (root_probe.py)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.engine.factory import new_task
from testctl_agent.generators import probe
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.types import Value

HERE = "127.0.0.1"


@pytest.fixture
def port() -> int:
    """A UDP port that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((HERE, 0))
        return int(sock.getsockname()[1])


def client(port: int, **options: Value) -> Mapping[str, Value]:
    return {"side": "client", "address": HERE, "bind": HERE, "port": port, "seed": 7} | options


def test_loopback_passes_what_it_can(tmp_path: Path, port: int) -> None:
    server = new_task("generator", "probe", {"side": "server", "address": HERE, "port": port, "seed": 7}, tmp_path)
    server.start()
    asking = new_task("generator", "probe", client(port, bytes=9000), tmp_path)
    asking.start()
    assert asking.wait(120)
    found = asking.result()
    assert (found["passes"], found["largest"], found["why"]) == (True, 9000, "")
    assert not server.poll()
    server.stop()
    assert server.result()["answered"] >= 3


def test_another_seed_or_peer_is_not_answered(tmp_path: Path, port: int) -> None:
    for options in ({"seed": 8}, {"seed": 7, "peer": "192.0.2.1"}):
        server = probe.task({"side": "server", "address": HERE, "port": port} | options, tmp_path)
        server.start()
        asking = probe.task(client(port, bytes=1500, tries=2, timeout_ns=20_000_000), tmp_path)
        asking.start()
        assert asking.wait(120)
        with pytest.raises(TestbedError, match=rf"probe client: no answer from {HERE}, UDP port {port}, to packets"):
            asking.result()
        server.stop()
        assert server.result()["answered"] == 0


def test_an_address_may_be_written_in_another_way(tmp_path: Path, port: int) -> None:
    there = {"port": port, "address": "0:0:0:0:0:0:0:1", "seed": 7}
    server = probe.task(there | {"side": "server", "peer": "::0001"}, tmp_path)
    server.start()
    asking = probe.task(there | {"side": "client", "bind": "::1", "bytes": 1500}, tmp_path)
    asking.start()
    assert asking.wait(120)
    server.stop()
    assert asking.result()["passes"]


def test_what_can_not_be(tmp_path: Path, port: int) -> None:
    with pytest.raises(TestbedError, match="want bytes from 128 to 65535; got 64"):
        probe.task(client(port, bytes=64), tmp_path)
    with pytest.raises(TestbedError, match="option bytes is missing"):
        probe.task(client(port), tmp_path)
    with pytest.raises(
        TestbedError, match=r"can't be at 203\.0\.113\.213, UDP port 7407: Cannot assign requested address"
    ):
        probe.task({"side": "server", "address": "203.0.113.213"}, tmp_path).start()
    with pytest.raises(TestbedError, match=r"UDP port 70000: .*must be 0-65535"):
        probe.task({"side": "server", "address": HERE, "port": 70000}, tmp_path).start()
    with pytest.raises(TestbedError, match="want an IP address; got 'alpha'"):
        probe.task({"side": "server", "address": "alpha"}, tmp_path).start()


@given(st.integers(probe.MIN, probe.MAX), st.integers(probe.MIN, probe.MAX))
def test_the_largest_size_is_found(most: int, asked: int) -> None:
    tried: list[int] = []

    def passes(size: int) -> bool:
        tried.append(size)
        return size <= most

    assert probe.largest(passes, probe.MIN, asked) == min(most, asked)
    assert len(tried) <= 18


@given(st.binary(max_size=64))
def test_foreign_payloads_are_no_messages(data: bytes) -> None:
    found = probe.unpacked(data)
    assert found is None or found.packed(len(data))[:8] == data[:5] + b"\0" + data[6:8]


def test_a_message_is_as_long_as_asked() -> None:
    message = probe.Message(1, 1500, 2**64 - 1, 3)
    assert [len(message.packed(size)) for size in (0, 20, 1472)] == [20, 20, 1472]
    assert probe.unpacked(message.packed(1472)) == message


def test_a_sentence_names_the_way_and_the_size() -> None:
    assert probe.report("a", "b", 9000, 1500, 9000)["why"] == (
        "from a to b packets of 9000 bytes do not arrive, the largest that do have 1500"
    )


@pytest.mark.root
def test_a_router_with_a_smaller_mtu(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_probe.py")).endswith("done\n")
