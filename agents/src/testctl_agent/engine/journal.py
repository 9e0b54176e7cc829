# SPDX-License-Identifier: Apache-2.0
"""The values that were there before, on disk, so that a crash loses none of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value


@dataclass(frozen=True)
class Entry:
    """What a parameter of an entity was before it was first changed."""

    entity: str
    parameter: str
    value: Value


@dataclass(frozen=True)
class Unreadable:
    """A line that is no entry: nobody knows what to restore, so it is kept."""

    number: int
    line: str


def _entry(number: int, line: str) -> Entry | Unreadable:
    try:
        found = Entry(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return Unreadable(number, line)
    names = isinstance(found.entity, str) and isinstance(found.parameter, str)
    return found if names and isinstance(found.value, str | int | float) else Unreadable(number, line)


def _line(entry: Entry | Unreadable) -> str:
    return (entry.line if isinstance(entry, Unreadable) else json.dumps(entry.__dict__)) + "\n"


class Journal:
    """Entries in the order of their changes; a file of JSON lines, synced at every addition.

    The file is there exactly while something is changed.  Methods raise ApplyError that names the
    file when it can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Entry | Unreadable]:
        """All lines, oldest first.  One cut by a crash was never acted on and is left out."""
        try:
            text = self.path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be read: {error.strerror}") from error
        return [_entry(number, line) for number, line in enumerate(text.split("\n")[:-1], 1)]

    def entries(self) -> list[Entry]:
        """All entries, oldest first; ApplyError for a line that is none."""
        entries: list[Entry] = []
        for entry in self.read():
            if isinstance(entry, Unreadable):
                raise self.odd(entry)
            entries.append(entry)
        return entries

    def odd(self, line: Unreadable) -> ApplyError:
        """What to say of a line that is no entry."""
        return ApplyError(f"{self.path}:{line.number}: not a journal entry: {line.line[:200]!r}")

    def add(self, *entries: Entry) -> None:
        """Write entries down, for good, before the changes they are for; when that fails the file is as before."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self.path.exists()
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                self._append(file, "".join(map(_line, entries)).encode())
            finally:
                os.close(file)
            if fresh:
                self._sync_folder()
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be written: {error.strerror}") from error

    def _append(self, file: int, lines: bytes) -> None:
        end = self._whole(file)
        try:
            if (done := os.write(file, lines)) < len(lines):
                os.write(file, lines[done:])  # says why it was cut
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)
            raise

    def _whole(self, file: int) -> int:
        """The length of the whole lines; what a crash cut off after them is removed."""
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            size = os.pread(file, size, 0).rfind(b"\n") + 1
            os.ftruncate(file, size)
        return size

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def keep(self, entries: Sequence[Entry | Unreadable]) -> None:
        """Forget all entries but these, at once and for good."""
        if not entries and not self.path.exists():
            return
        try:
            if entries:
                fresh = self.path.with_suffix(".new")
                with fresh.open("w", encoding="utf-8") as file:
                    file.write("".join(map(_line, entries)))
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(self.path)
            else:
                self.path.unlink(missing_ok=True)
            self._sync_folder()
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be written: {error.strerror}") from error
