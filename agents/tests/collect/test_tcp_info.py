# SPDX-License-Identifier: Apache-2.0
"""The tcp_info collector: its command, and a run."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest
from testctl_agent.collect import tcp_info
from testctl_agent.generators import tgen
from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.together import Together


def test_the_command() -> None:
    argv = [tgen.binary(), "sample", "out=w/tcp_info.bin", "interval_ns=5000000", "ports=5001,5002"]
    assert tcp_info.argv({"interval_ns": 5_000_000, "ports": "5001,5002", "device": "eth0"}, Path("w")) == argv


def test_the_interval_when_nothing_is_said() -> None:
    assert "interval_ns=10000000" in tcp_info.argv({}, Path("w"))


def test_a_run(tmp_path: Path) -> None:
    task = tcp_info.task({"interval_ns": 1_000_000, "ports": "1"}, tmp_path)
    task.start()
    assert not task.wait(0.02)
    task.stop()
    assert task.result() == {"bytes": 8}
    assert task.files() == tcp_info.files({})
    assert (tmp_path / "tcp_info.bin").read_bytes()[:4] == b"TGI1"


def test_what_it_does_not_take(tmp_path: Path) -> None:
    task = tcp_info.task({"interval_ns": 1_000_000, "ports": "x"}, tmp_path)
    with pytest.raises(TestbedError, match=r"^tcp_info: ended before it was ready: tgen sample: want .*got 'ports=x'"):
        task.start()


def test_tgen_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TESTCTL_TGEN", str(tmp_path / "none"))
    with pytest.raises(TestbedError, match=r"^tcp_info: .*can't be executed"):
        tcp_info.task({}, tmp_path)


@pytest.mark.parametrize("family", ["inet", "inet6"])
def test_the_sockets_of_one_family(tmp_path: Path, family: str) -> None:
    options = {"interval_ns": 1_000_000, "family": family}
    assert f"family={family}" in tcp_info.argv(options, tmp_path)
    assert tcp_info.files(options) == ["tcp_info.bin"]


def test_the_sockets_of_both_families_in_a_file_each(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
    ):
        ports = [server.getsockname()[1] for server in (four, six)]
        made = [socket.create_connection((host, port)) for host, port in zip(("127.0.0.1", "::1"), ports, strict=True)]
        options = {"interval_ns": 1_000_000, "ports": ",".join(map(str, ports)), "family": "inet,inet6"}
        task = tcp_info.task(options, tmp_path)
        task.start()
        assert not task.wait(1)
        task.stop()
        for connection in made:
            connection.close()
    assert task.poll()
    files = [tmp_path / name for name in task.files()]
    assert [path.name for path in files] == tcp_info.files(options) == ["tcp_info.bin", "tcp_info6.bin"]
    assert task.result() == {"bytes": sum(path.stat().st_size for path in files)}
    for path, port in zip(files, ports, strict=True):
        data = path.read_bytes()
        seen = {struct.unpack_from("<HH", data, at + 8) for at in range(8, len(data), 24 + 320)}
        assert seen
        assert all(port in pair for pair in seen), "of this family alone"


def test_when_the_second_sampler_can_not_start_the_first_one_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "tcp_info6.bin.part").mkdir()
    task = tcp_info.task({"interval_ns": 1_000_000, "ports": "1", "family": "inet,inet6"}, tmp_path)
    with pytest.raises(TestbedError, match=r"^tcp_info: .*can't write .*tcp_info6\.bin"):
        task.start()
    assert isinstance(task, Together)
    assert task.tasks[0].poll()


def test_a_family_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"^tcp_info: family: want inet, inet6 or inet,inet6; got 'inet6,inet'$"):
        tcp_info.task({"family": "inet6,inet"}, tmp_path)
