# SPDX-License-Identifier: Apache-2.0
"""A session of tests fails where it leaves a process or a temporary directory of testctl."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from testctl.system.temporary import ALL, HELD

MARK = "TESTCTL_TEST_SESSION"
"""In the environment of all that the session starts: its process id."""
GRACE_S = float(os.environ.get("TESTCTL_GRACE_S", "20"))
"""What a test has killed may take so long to end."""
SHARED = ("ssh", "ssh-agent", "gpg-agent")
"""Programs that stay for others by design: OpenSSH's connections of Ansible end by themselves."""


_BEGAN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(MARK, str(os.getpid()))
    config.stash[_BEGAN] = time.time()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ or os.environ[MARK] != str(os.getpid()):
        return
    until = time.monotonic() + GRACE_S
    while (left := [*processes(), *directories(session.config.stash[_BEGAN])]) and time.monotonic() < until:
        time.sleep(0.5)
    if left:
        print("\n\nThe tests have left behind:", *left, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def processes() -> list[str]:
    """Those whose parent has ended, with the test that started them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            names = dict(word.partition(b"=")[::2] for word in (process / "environ").read_bytes().split(b"\0"))
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            mine = names.get(MARK.encode()) == str(os.getpid()).encode() and parent == 1
            if mine and Path(words.split(" ")[0].rstrip(":")).name not in SHARED:
                test = names.get(b"PYTEST_CURRENT_TEST", b"?").decode(errors="replace")
                found.append(f"process {process.name} of {test}: {words[:100]}")
    return found


def marked(mark: str) -> list[int]:
    """The ids of processes with these characters in their environment or their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(mark.encode() in (process / name).read_bytes() for name in ("environ", "cmdline")):
                found.append(int(process.name))
    return found


def directories(began: float) -> list[str]:
    """Those made since then that no process holds."""
    there = Path(tempfile.gettempdir()).glob(f"{ALL}*")
    return [f"directory {path}" for path in there if _abandoned(path) and path.stat().st_ctime > began]


def _abandoned(directory: Path) -> bool:
    try:
        with (directory / HELD).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:
        return False
