# SPDX-License-Identifier: Apache-2.0
"""Finds and reads an entity's raw files (JSON or records), and the results of its collectors."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from testctl_agent.spec import untrusted

from testctl.records.errors import RecordsError
from testctl.records.schema import Array

MOST_JSON = 256 << 20


def find_file(entity: Path, name: str) -> Path | None:
    """ENTITY/NAME or ENTITY/*/NAME; None when there is none, RecordsError when there are several."""
    files = [path for path in (entity / name, *sorted(entity.glob(f"*/{name}"))) if path.is_file()]
    if len(files) > 1:
        raise RecordsError(entity, f"want one {name}; got {', '.join(str(path.relative_to(entity)) for path in files)}")
    return files[0] if files else None


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds.  Raises RecordsError."""
    try:
        loaded = untrusted.loads(json_text(path))
    except (OSError, ValueError) as error:
        raise RecordsError(path, f"can't be read as JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise RecordsError(path, f"want a JSON object; got {type(loaded).__name__}")
    return loaded


def json_text(path: Path) -> str:
    """The text of a JSON file of a run.  Raises OSError; ValueError for one that is too large to be one."""
    with path.open(encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_size > MOST_JSON:
            raise ValueError(f"want a file of at most {MOST_JSON >> 20} MiB")
        return file.read()


def read_records(path: Path, kind: np.dtype[Any]) -> tuple[Array, bool]:
    """The whole records of a file, mapped into memory, and whether it ends within one.  Raises RecordsError."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            data = np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"", np.uint8)
    except OSError as error:
        raise RecordsError(path, f"can't be read: {error.strerror or error}") from error
    count, rest = divmod(len(data), kind.itemsize)
    return data[: count * kind.itemsize].view(kind), rest > 0
