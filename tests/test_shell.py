# SPDX-License-Identifier: Apache-2.0
"""`testctl lab shell` at a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.lab


def read_until(terminal: int, words: bytes, timeout_s: float = 180.0) -> bytes:
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


def shell(*words: str) -> tuple[int, int]:
    """The process and its terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "testctl.cli.main", "lab", "shell", *words])
    return pid, terminal


def say(terminal: int, command: str) -> bytes:
    """What a command of the shell says; the word that ends it is not in what is typed."""
    os.write(terminal, f"{command}; echo do''ne\n".encode())
    return read_until(terminal, b"done")


def leave(pid: int, terminal: int) -> int:
    os.write(terminal, b"exit\n")
    read_until(terminal, b"Power down")
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def test_a_shell_in_a_topology_and_out_again(tmp_path: Path) -> None:
    """It says who is where; the machine's files are as they were, but for those that it was given."""
    ours, given = tmp_path / "ours", tmp_path / "given"
    ours.mkdir()
    given.mkdir()
    pid, terminal = shell("dumbbell", "--writable", str(given))
    banner = read_until(terminal, b"# ").decode()
    for words in ("sender    10.0.0.1", "receiver  10.0.0.2", "left      ebpf, ports to sender, right", "read-only",
                  f"/run, which is gone at the end and {given}"):  # fmt: skip
        assert words in banner, banner
    proposed = re.search(r"A command on one of them: (.+?)\r?\n", banner)
    assert proposed, banner
    assert b"10.0.0.1/16" in say(terminal, f"{proposed[1]} && echo ended well"), "a program that is there"
    assert b"10.0.0.1/16" in say(terminal, "ip netns exec sender ip -br address show eth0")
    assert b"Read-only file system" in say(terminal, f"touch {ours}/file {Path.home()}/testctl-was-here")
    assert b"Read-only file system" in say(terminal, f"ip netns exec sender rm -r {ours}")
    assert b"rror" not in say(terminal, f"echo mine > {given}/file && echo kept > /run/tmp/file")
    assert leave(pid, terminal) == 0
    assert list(ours.iterdir()) == []
    assert not (Path.home() / "testctl-was-here").exists()
    assert (given / "file").read_text() == "mine\n"
