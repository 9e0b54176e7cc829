# SPDX-License-Identifier: Apache-2.0
"""What glibc does with memory that is freed: mallopt(3), malloc_trim(3)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MOST = 1 << 25
"""Arrays up to this size, glibc's limit, are not each made of the system's memory and given back."""
_KEPT = 1 << 29


@contextmanager
def freed_is_kept() -> Iterator[None]:
    """Within it arrays are made of the memory of those before, up to 512 MiB, which the system need not find anew.

    Afterwards all that is free goes back.  Other C libraries have no such functions, and no need of them.
    """
    _set(_KEPT)
    try:
        yield
    finally:
        _set(2 * _MOST)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def _set(kept: int) -> None:
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _MOST)
        libc.mallopt(_TRIM_THRESHOLD, kept)
