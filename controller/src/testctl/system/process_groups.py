# SPDX-License-Identifier: Apache-2.0
"""The sessions of the labs that this process runs, so that all of their processes end with it.

A lab's kernel dies with its parent process.  A kernel that is just starting may leave a stopped process that it
traces, so the whole session has to be killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from testctl.system import temporary
from testctl.system.subprocesses import Process

PR_SET_PDEATHSIG = 1
_sessions: set[int] = set()
_starting = _told = False


@contextmanager
def starting() -> Iterator[set[int]]:
    """Context of a lab's start; the caller adds the lab's session to the yielded set."""
    global _starting
    _starting = True
    try:
        yield _sessions
    finally:
        _starting = False
        if _told:
            _leave()


def end(process: Process) -> None:
    """Kill all remaining processes of a lab."""
    _kill(process.pid)
    process.wait()
    _sessions.discard(process.pid)


def end_on_sigterm(parent: int) -> None:
    """Install signal handlers: SIGTERM, also sent when the parent dies, ends this process and its labs.

    parent: its process id; a parent that is already dead sends no signal, so it is checked

    SIGINT is ignored: at a terminal the parent receives it too, and sends SIGTERM.
    """
    import ctypes

    _sessions.clear()  # a forked process has its parent's
    signal.signal(signal.SIGTERM, _end_all)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        _leave()


def _end_all(_signal: int, _frame: FrameType | None) -> None:
    global _told
    _told = True
    if not _starting:
        _leave()


def _leave() -> None:
    for session in _sessions:
        _kill(session)
    temporary.remove_mine()
    os._exit(1)


def _kill(session: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
