# SPDX-License-Identifier: Apache-2.0
"""How SIGINT and SIGTERM end a command that runs points."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit code."""
TOGETHER_S = 0.5
"""Signals that come within this time are one: `timeout` sends its signal to the command and to its process group."""

_BOTH = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible(kept: str | None = None, undo: Callable[[], None] = lambda: None) -> Iterator[None]:
    """The first signal raises KeyboardInterrupt; one that comes later, while the command ends, ends it at once.

    What it leaves then ends by itself: workers die with their parent, leases run out, and the next run removes
    the rest.  Afterwards both signals have the handlers that they had.  For the main thread alone.

    kept  what becomes of the work, which is printed before the command ends; None: the caller ends it
    undo  is called before that
    """

    def first(*_: object) -> None:
        began = time.monotonic()

        def later(*_: object) -> None:
            if time.monotonic() - began > TOGETHER_S:
                os._exit(INTERRUPTED)

        _install(later)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _BOTH}
    _install(first)
    try:
        yield
    except KeyboardInterrupt:
        if kept is None:
            raise
        undo()
        print(f"interrupted{kept and '; '}{kept}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        for number, handler in before.items():
            # None: not installed by Python, which can't bring it back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _install(handler: object) -> None:
    for number in _BOTH:
        signal.signal(number, handler)  # type: ignore[arg-type]
