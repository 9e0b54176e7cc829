# SPDX-License-Identifier: Apache-2.0
"""How much memory there is, and what becomes of what is freed: by glibc (mallopt(3), malloc_trim(3)), Arrow, Python."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_MOST = 1 << 25
"""Arrays up to this size, glibc's limit, are not each made of the system's memory and given back."""
_KEPT, _ALL = 1 << 29, (1 << 31) - 1
_MAPPED = 1 << 16
"""Arrays above `_MOST` that may be, glibc's default."""


@contextmanager
def freed_is_kept(*, all_sizes: bool = False) -> Iterator[None]:
    """Within it arrays are made of the memory of those before, up to 512 MiB, which the system need not find anew.

    all_sizes: also those above 32 MiB, and without a limit, where many of one size follow each other.  Such a one is
    not within another.

    Afterwards all that is free goes back.  Other C libraries have no such functions, and no need of them.
    """
    _set(
        {_MMAP_THRESHOLD: _MOST, _TRIM_THRESHOLD: _ALL if all_sizes else _KEPT, _MMAP_MAX: 0 if all_sizes else _MAPPED}
    )
    try:
        yield
    finally:
        _set({_TRIM_THRESHOLD: 2 * _MOST, _MMAP_MAX: _MAPPED})
        _trim()


def give_back() -> None:
    """Give the system all memory that nothing refers to any more: for a process that did something large and goes on.

    Records and what was computed of them refer to each other, so that only Python's collector frees them, and Arrow
    keeps for itself what was freed.  60 ms.
    """
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    _trim()


def _trim() -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _set(options: Mapping[int, int]) -> None:
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for option, value in options.items():
            libc.mallopt(option, value)


def free_mb(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Memory of this machine that is available, in MB."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(encoding="ascii"), re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def spare_bytes() -> int:
    """What one thing that is read may take: a quarter of what is free, or of what this process may have at most."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    free = free_mb() << 20
    return (free if most == resource.RLIM_INFINITY else min(free, most)) // 4
