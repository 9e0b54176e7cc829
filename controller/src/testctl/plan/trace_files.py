# SPDX-License-Identifier: Apache-2.0
"""The files that a plan's values name by their paths, which begin at the plan: traces of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from testctl_agent.params.types import Changing
from testctl_agent.spec.trace import MAX_FILE_BYTES
from testctl_agent.spec.types import ValueType


@dataclass
class TraceFiles:
    """Reads them.

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
        if not isinstance(kind, Changing) or kind.file is None or not isinstance(raw, str) or "/" not in raw:
            return raw
        if kind.value(raw) or kind.takes(raw):
            return raw
        if raw not in self.read:
            self.read[raw] = self._read(kind, raw)
        return self.read[raw]

    def _read(self, kind: Changing, name: str) -> str:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise ValueError(
                f"want the path of a trace below the plan's directory, such as ./cellular.trace; got {name!r}"
            )
        if self.kept is not None:
            if name not in self.kept:
                raise ValueError(f"want the trace that the run used; it has none named {name!r}")
            return self.kept[name]
        if self.directory is None:
            raise ValueError(f"want a plan in a file, from which the path begins; got only its text, and {name!r}")
        try:
            with (self.directory / name).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ValueError(f"{name}: can't be read: {error.strerror or error}") from error
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(f"{name}: want a file of at most {MAX_FILE_BYTES} bytes")
        assert kind.file is not None, "value() asked"
        try:
            return kind.file(data)
        except ValueError as error:
            raise ValueError(f"{name}, {error}") from error
