# SPDX-License-Identifier: Apache-2.0
"""What was computed from a file, kept while the file is the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Stamp = tuple[int, int, int]


def stamp(path: Path) -> Stamp | None:
    """What changes when a file does: (mtime_ns, size, inode); None when it is not there.  A link is not followed."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Cache:
    """The `most` values used last.  Any thread may ask; a value is made by one of them while the others wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, version: Hashable, make: Callable[[], T]) -> T:
        """The value of `key` at this version, made if need be.  What `make` raises is not kept."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                kept = self._kept.get(key)
                if kept is not None and kept[0] == version:
                    self._kept.move_to_end(key)
                    value: T = kept[1]
                    return value
            try:
                value = make()
            except BaseException:
                with self._lock:
                    if key not in self._kept:
                        self._making.pop(key, None)
                raise
            with self._lock:
                self._kept[key] = (version, value)
                self._kept.move_to_end(key)
                while len(self._kept) > self._most:
                    gone, _ = self._kept.popitem(last=False)
                    self._making.pop(gone, None)
            return value
