# SPDX-License-Identifier: Apache-2.0
"""The labs that this process runs, so that all of their processes end when it is told to.

A lab's kernel dies with whoever started it, but one that is just starting may leave a process that it traces, stopped
for good: only its whole session ends surely.
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
    """Around a lab's start, which adds its session to what is given."""
    global _starting
    _starting = True
    try:
        yield _sessions
    finally:
        _starting = False
        if _told:
            _leave()


def end(process: Process) -> None:
    """Whatever is left of a lab ends now."""
    _kill(process.pid)
    process.wait()
    _sessions.discard(process.pid)


def end_when_told(parent: int) -> None:
    """From now on SIGTERM, which comes when the parent dies too, ends this process and its labs.

    parent: its process id; one that has died already sends no signal any more

    SIGINT does nothing: at a terminal the parent has it too, and tells.
    """
    import ctypes

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
