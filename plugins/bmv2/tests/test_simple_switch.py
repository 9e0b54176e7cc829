# SPDX-License-Identifier: Apache-2.0
"""BMv2 as a process: not there, not starting, left behind.  What it does is tested in test_bmv2.py."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from testctl_agent.spec.errors import DriverError, TestbedError
from testctl_bmv2 import simple_switch, thrift, thrift_port


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that $TESTCTL_BMV2 names; it says what it is given and ends."""
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\necho no device eth9 >&2\nexit 3\n")
    path.chmod(0o755)
    monkeypatch.setenv(simple_switch.VARIABLE, str(path))
    return path


def test_where_it_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(simple_switch.VARIABLE, "/nowhere/bmv2")
    assert simple_switch.unavailable() == "want simple_switch_grpc at $TESTCTL_BMV2=/nowhere/bmv2; got none"
    monkeypatch.delenv(simple_switch.VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert simple_switch.unavailable() == "want simple_switch_grpc on PATH or at $TESTCTL_BMV2; got none"
    with pytest.raises(TestbedError, match="BMv2: want simple_switch_grpc on PATH"):
        simple_switch.start({}, tmp_path / "run")


def test_one_that_ends_at_once_is_quoted_and_leaves_nothing(stand_in: Path, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"simple_switch_grpc: it ended \(exit 3\): no device eth9"):
        simple_switch.start({}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_left_behind_is_ended_and_a_stranger_with_its_number_is_not(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        began = Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[19]
        for noted, ended in ((f"{sleeper.pid} {int(began) + 1}\n", False), (f"{sleeper.pid} {began}\n", True)):
            directory = tmp_path / "run"
            directory.mkdir()
            (directory / "pid").write_text(noted)
            simple_switch.end_stale(directory)
            assert not directory.exists()
            assert (sleeper.poll() is not None) == ended
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_note_of_a_port_that_a_full_disk_left_empty_is_none(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thrift").touch()
    simple_switch.end_stale(tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["run", "x" * 100])
def test_one_that_can_not_be_used_is_ended(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On a full disk, or where the path of its socket is too long."""
    started: list[simple_switch.subprocesses.Process] = []
    start = simple_switch.subprocesses.start

    def noted(*words: Any) -> simple_switch.subprocesses.Process:
        started.append(start(*words))
        return started[0]

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stand_in.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(simple_switch.subprocesses, "start", noted)
    if name == "run":
        monkeypatch.setattr(Path, "write_text", full)
    try:
        with pytest.raises(TestbedError, match=r"BMv2: .*(No space left|path too long)"):
            simple_switch.start({}, tmp_path / name)
        assert started[0].poll() is not None
        assert not (tmp_path / name).exists()
    finally:
        started[0].kill()
        started[0].wait()


def test_without_nftables_a_switch_of_devices_is_refused(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simple_switch, "unavailable", lambda: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        TestbedError, match=r"BMv2: want nft \(nftables\) on PATH, to close BMv2's Thrift port; got none"
    ):
        simple_switch.start({1: "eth9"}, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.root
@pytest.mark.skipif(bool(thrift_port.unavailable()), reason=thrift_port.unavailable())
def test_nobody_else_reaches_the_thrift_port(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_thrift_port.py")).splitlines()[-1] == "closed"


def test_no_thrift_server() -> None:
    port = simple_switch.free_port()
    with pytest.raises(
        DriverError, match=rf"Thrift server at 127\.0\.0\.1:{port}: simple_switch:set_egress_queue_rate"
    ):
        thrift.SimpleSwitch(port).set_rate(1, 100)
