# SPDX-License-Identifier: Apache-2.0
"""How SIGINT and SIGTERM end a command that runs points."""

from __future__ import annotations

import os
import signal

INTERRUPTED = 130
"""The exit code."""


def interruptible() -> None:
    """The first raises KeyboardInterrupt; one that comes while the command ends, ends it at once.

    What it leaves then ends by itself: workers die with their parent, leases run out, and the next run removes
    the rest.
    """

    def first(*_: object) -> None:
        _both(lambda *_: os._exit(INTERRUPTED))
        raise KeyboardInterrupt

    _both(first)


def _both(handler: object) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)  # type: ignore[arg-type]
