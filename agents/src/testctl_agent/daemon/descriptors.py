# SPDX-License-Identifier: Apache-2.0
"""File descriptors: raises the limit, and reserves some for a restore."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RESERVE = 64
"""Upper bound of the descriptors that all parameters of one entity have open at a time."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Reserve:
    """Reserved file descriptors, which are closed for a restore when all others are in use."""

    def __init__(self, count: int = RESERVE) -> None:
        self._count = count
        self._held: list[int] = []
        self._lock = threading.Lock()
        self._fill()

    def _fill(self) -> None:
        """As many as can be had, which may be fewer, or none."""
        try:
            while len(self._held) < self._count:
                self._held.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Within this they are free; afterwards they are held again."""
        with self._lock:
            while self._held:
                os.close(self._held.pop())
            try:
                yield
            finally:
                self._fill()

    def close(self) -> None:
        with self._lock:
            while self._held:
                os.close(self._held.pop())
