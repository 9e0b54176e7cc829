# SPDX-License-Identifier: Apache-2.0
"""Removes what a killed agent left behind: running programs, and files of their tasks."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from testctl_agent.daemon.workdir import LEASE

_log = logging.getLogger(__name__)


def writers(folder: Path) -> Iterator[int]:
    """Processes whose standard output or error is a file of a task below a directory.

    Every task's program has that, and nothing else writes there.
    """
    below = f"{folder.resolve()}/"
    for path in Path("/proc").glob("[0-9]*"):
        if any(_target(path / "fd" / number).startswith(below) for number in ("1", "2")):
            yield int(path.name)


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # it ended, or is another user's


def end(folder: Path) -> None:
    """Kill those processes, and remove the directories of leases."""
    for pid in list(writers(folder)):
        _kill(pid, folder)
    if folder.is_dir():
        for path in folder.iterdir():
            if LEASE.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)


def _kill(pid: int, folder: Path) -> None:
    """Kill a process by pidfd, if it still is one of those."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if pid in writers(folder):
            _log.warning("process %d, left by an agent that was killed, is ended", pid)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
