# SPDX-License-Identifier: Apache-2.0
"""`testctl lab shell` at a terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pytest

pytestmark = pytest.mark.lab


def read_until(terminal: int, words: bytes, timeout_s: float = 60.0) -> bytes:
    """What the terminal shows until the words come, or it ends."""
    seen = b""
    deadline = time.monotonic() + timeout_s
    while words not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 4096)
            except OSError:
                break
    return seen


def test_a_shell_in_a_topology_and_out_again() -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "testctl.cli.main", "lab", "shell", "dumbbell"])
    assert b"lab " in read_until(terminal, b"# ")
    os.write(terminal, b"ip netns exec sender ip -br address show eth0; echo do''ne\n")
    said = read_until(terminal, b"done")
    assert b"10.0.0.1/16" in said, said
    os.write(terminal, b"exit\n")
    read_until(terminal, b"Power down", 20)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
