# SPDX-License-Identifier: Apache-2.0
"""What a killed lab left is removed by the next start; of one that runs nothing is."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.system import temporary


def process_of(lab: Path) -> subprocess.Popen[bytes]:
    """A process with the words of a lab's kernel."""
    argv = [sys.executable, "-c", "import time; time.sleep(600)", f"uml_dir={lab}", "umid=lab"]
    return subprocess.Popen(argv)


@pytest.fixture
def running() -> Iterator[list[subprocess.Popen[bytes]]]:
    found: list[subprocess.Popen[bytes]] = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def test_a_process_of_a_dead_lab_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, running: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, held, never = (tmp_path / f"{temporary.LABS}{name}" for name in ("dead", "held", "never"))
    for lab in (dead, held, never):
        lab.mkdir()
        running.append(process_of(lab))
    (dead / temporary.HELD).write_text("", encoding="utf-8")
    temporary.hold(held)
    try:
        temporary.remove_temporary()
        assert running[0].wait(timeout=60) == -signal.SIGKILL
        assert (dead.exists(), held.exists(), never.exists()) == (False, True, True)
        assert [process.poll() for process in running[1:]] == [None, None]
    finally:
        temporary.release(held)
