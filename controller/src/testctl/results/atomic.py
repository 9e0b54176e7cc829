# SPDX-License-Identifier: Apache-2.0
"""Atomic writes (testctl_agent.system.durable), with errors that state what was lost."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.spec.units import Bytes
from testctl_agent.system import durable

_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def naming_path(where: Path, lost: str) -> Iterator[None]:
    """Context: turns an OSError into a TestbedError with the path, the reason and what was lost."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise TestbedError(f"{where}: no space left on the device; {lost}") from error
        if error.errno in _DENIED:
            raise TestbedError(f"{where}: not writable ({error.strerror}); {lost}") from error
        raise TestbedError(f"{where}: {error.strerror or error}; {lost}") from error


def check_place(directory: Path, need: int) -> None:
    """Refuse, before anything starts, a directory that can't take `need` bytes.

    Looks at the nearest parent that exists; makes nothing.  Raises PlanError.
    """
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise PlanError(f"{directory}: want a directory for results; got {place}, which is a file")
    if not os.access(place, os.W_OK | os.X_OK):
        raise PlanError(f"{directory}: want a writable directory for results; {place} is not writable")
    free = shutil.disk_usage(place).free
    if free < need:
        raise PlanError(f"{directory}: want {size_text(need)} free for results; got {size_text(free)} on {place}")


KEPT_FREE = 500_000_000
"""Bytes that received files must leave free on the disk."""


def check_room(path: Path, more: int) -> None:
    """Raises TestbedError if so many more bytes of a received file would fill the disk."""
    free = shutil.disk_usage(path.parent).free
    if free - more < KEPT_FREE:
        raise TestbedError(
            f"{path}: want {size_text(KEPT_FREE)} to stay free; what comes would leave {size_text(free)} or less"
        )


def write_text(path: Path, text: str) -> None:
    """Write a file atomically and durably.  Raises OSError and leaves no partial file."""
    durable.write(path, text.encode())


def write_json(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    write_text(path, as_json(value))


def as_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """JSON that is valid everywhere: no NaN, keys in the order given."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """A value as JSON can hold it: paths and enums as text, NaN and infinity as null."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if abs(value) < float("inf") else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "item"):  # a numpy scalar
        return plain(value.item())
    return str(value)


def put_file(source: Path, target: Path) -> None:
    """Place a file at `target`: a hard link where possible, else a copy.  Raises OSError."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
            raise
        shutil.copyfile(source, target)


def size_text(count: int) -> str:
    """Bytes for a person, such as "1.5 GB"."""
    for unit in ("GB", "MB", "kB"):
        size = Bytes.units[unit]
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
