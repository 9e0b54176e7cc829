# SPDX-License-Identifier: Apache-2.0
"""A rack that a killed test left is removed by the next test; a rack whose test runs is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from simulated_rack import network
from testctl_agent.spec.errors import TestbedError

from plugins.rack.tests.rack.abandoned import remove_abandoned
from plugins.rack.tests.rack.bed import bed

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]
WAITING = Path(__file__).with_name("waiting.py")


def test_the_next_test_removes_it(tmp_path: Path) -> None:
    remove_abandoned()  # of an earlier session: the program below would do it, and say so before "made"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, str(WAITING), str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "made\n"
        there = network.namespaces()
        assert there
        remove_abandoned()
        assert network.namespaces() == there
        with pytest.raises(TestbedError, match=f"want no rack on this machine; .*--state {tmp_path}/state"):
            bed(tmp_path / "second").__enter__()
        disk = tmp_path / "results"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True)
        other.send_signal(signal.SIGKILL)
        other.wait()
        remove_abandoned()
    assert network.namespaces() == []
    assert network.devices() == []
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert not (tmp_path / "state").exists()
    assert subprocess.run(["pgrep", "-f", f"{tmp_path}/"], stdout=pipe, check=False).stdout == b""
