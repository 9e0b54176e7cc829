# SPDX-License-Identifier: Apache-2.0
"""The files that a plan names by their paths, which begin at the plan: its topology, and files of values."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from testctl_agent.spec.trace import MAX_FILE_BYTES
from testctl_agent.spec.types import FileType, ValueType


def read_named(directory: Path | None, name: str, most: int) -> bytes:
    """What a file has that a plan names by its path.

    directory  the plan's; None: the plan is not in a file

    The path may not lead out of that directory, also not by a link: a plan may be another person's, and what is wrong
    in a file is printed.  Raises ValueError "want …; got …".
    """
    _refuse_outside(name)
    if directory is None:
        raise ValueError(f"want a plan in a file, from which the path begins; got only its text, and {name!r}")
    try:
        place = (directory / name).resolve()
        if not place.is_relative_to(directory.resolve()):
            raise ValueError(f"{name}: want a file below the plan's directory; got a link to {place}")
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{name}: want a file; got a directory, a pipe or a device")
            data = file.read(most + 1)
    except OSError as error:
        raise ValueError(f"{name}: can't be read: {error.strerror or error}") from error
    if len(data) > most:
        raise ValueError(f"{name}: want a file of at most {most} bytes")
    return data


def _refuse_outside(name: str) -> None:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"want the path of a file below the plan's directory, such as ./mine.yaml; got {name!r}")


@dataclass
class ValueFiles:
    """Those of values, such as traces of links and distributions of sizes.

    directory  the plan's; None: the plan is not in a file
    kept       path -> value of those that a run kept, where the files themselves are not to be read
    read       those that have been read
    """

    directory: Path | None = None
    kept: Mapping[str, str] | None = None
    read: dict[str, str] = field(default_factory=dict)

    def value(self, kind: ValueType, raw: object) -> object:
        """`raw`, or what a file's text stands for where it is a path and the type has such files.

        Raises ValueError "want …; got …" with the file and its line.
        """
        if not isinstance(kind, FileType) or kind.file is None or not isinstance(raw, str) or "/" not in raw:
            return raw
        with suppress(ValueError):
            kind.parse(raw)
            return raw
        if raw not in self.read:
            self.read[raw] = self._read(kind, raw)
        return self.read[raw]

    def _read(self, kind: FileType, name: str) -> str:
        if self.kept is not None:
            _refuse_outside(name)  # shrink writes the files of its plan
            if name not in self.kept:
                raise ValueError(f"want the file that the run used; it has none named {name!r}")
            return self.kept[name]
        data = read_named(self.directory, name, MAX_FILE_BYTES)
        assert kind.file is not None, "value() asked"
        try:
            return kind.file(data, (self.directory or Path()) / name)
        except ValueError as error:
            raise ValueError(f"{name}, {error}") from error
