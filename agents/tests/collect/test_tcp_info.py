# SPDX-License-Identifier: Apache-2.0
"""The tcp_info collector: its command, and a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.collect import tcp_info
from testctl_agent.generators import tgen
from testctl_agent.spec.errors import TestbedError


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
