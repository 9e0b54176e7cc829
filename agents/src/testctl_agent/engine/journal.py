# SPDX-License-Identifier: Apache-2.0
"""The journal of previous values, on disk, so that they survive a crash.

A file of JSON lines.  An entry is {"entity", "parameter", "value", "wanted", "boot"}: the value before, the value set
instead, and the boot of the machine.  A mark is the progress of all entries above it:

    {"mark": "applied"}     they are set; one that differs from "wanted" now was changed by somebody else
    {"mark": "restoring"}   they are being restored, and may have any value between

Without a mark an entry is being set.  "settled": true says the same as "applied", of one entry.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value
from testctl_agent.system import durable

_BOOT = Path("/proc/sys/kernel/random/boot_id")
Mark = Literal["applied", "restoring"]


def this_boot() -> str:
    """The boot id of the running machine.  Raises ApplyError."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ApplyError(f"{_BOOT}: can't be read: {error.strerror}") from error


@dataclass(frozen=True)
class Entry:
    """The value of an entity's parameter before it was changed.

    wanted   what it was changed to
    boot     of the machine, when that was; "": of a journal that does not outlive it
    settled  the change was completed, and is not being restored
    """

    entity: str
    parameter: str
    value: Value
    wanted: Value
    boot: str = ""
    settled: bool = False


@dataclass(frozen=True)
class Unreadable:
    """An invalid line: it is not known what to restore, so the line is kept."""

    number: int
    line: str


def _parsed(number: int, line: str) -> Entry | Unreadable | Mark:
    try:
        fields: dict[str, Any] = json.loads(line)
        if fields in ({"mark": "applied"}, {"mark": "restoring"}):
            mark: Mark = fields["mark"]
            return mark
        entry = Entry(**fields)
    except (ValueError, TypeError, RecursionError):
        return Unreadable(number, line)
    texts = (entry.entity, entry.parameter, entry.boot)
    values = all(isinstance(value, str | int | float) for value in (entry.value, entry.wanted))
    fits = all(isinstance(text, str) for text in texts) and values and isinstance(entry.settled, bool)
    return entry if fits else Unreadable(number, line)


def _line(entry: Entry | Unreadable) -> str:
    if isinstance(entry, Unreadable):
        return entry.line + "\n"
    fields = {"entity": entry.entity, "parameter": entry.parameter, "value": entry.value, "wanted": entry.wanted}
    if entry.boot:
        fields["boot"] = entry.boot
    if entry.settled:
        fields["settled"] = True
    return json.dumps(fields) + "\n"


class Journal:
    """Entries in the order of their changes, synced at every addition.

    The file exists while something is changed.  Methods raise ApplyError that names the
    file when it can't be read or written.

    boot  written into every entry; "": the journal does not outlive this boot, and nobody asks
    """

    def __init__(self, path: Path, boot: str = "") -> None:
        self.path = path
        self.boot = boot

    def read(self) -> list[Entry | Unreadable]:
        """All entries, oldest first.  A line cut by a crash was never acted on and is left out."""
        try:
            text = self.path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be read: {error.strerror}") from error
        entries: list[Entry | Unreadable] = []
        for number, line in enumerate(text.split("\n")[:-1], 1):
            parsed = _parsed(number, line)
            if isinstance(parsed, str):
                entries = [replace(e, settled=parsed == "applied") if isinstance(e, Entry) else e for e in entries]
            else:
                entries.append(parsed)
        return entries

    def odd(self, line: Unreadable) -> ApplyError:
        """The error for an invalid line."""
        return ApplyError(f"{self.path}:{line.number}: not a journal entry: {line.line[:200]!r}")

    def add(self, *entries: Entry) -> None:
        """Write entries down, for good, before the changes they are for; when that fails the file is as before."""
        known = (replace(entry, boot=entry.boot or self.boot) for entry in entries)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = not self.path.exists()
            self._append("".join(map(_line, known)).encode(), os.O_CREAT)
            if fresh:
                durable.sync(self.path.parent)
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be written: {error.strerror}") from error

    def mark(self, how: Mark) -> None:
        """Record the progress of the work on all entries, if there are any.

        It is not synced, because it is only used within this boot.  It is not an error if it can't be written: without
        "applied" the entries are restored nevertheless; without "restoring" a partly restored value is taken for a
        change by somebody else, and reported.
        """
        with suppress(OSError):
            self._append(json.dumps({"mark": how}).encode() + b"\n", 0, sync=False)

    def _append(self, lines: bytes, create: int, sync: bool = True) -> None:
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | create, 0o600)
        try:
            end = self._whole(file)
            try:
                while lines:  # a file system may take a part
                    lines = lines[os.write(file, lines) :]
                if sync:
                    os.fsync(file)
            except OSError:
                os.ftruncate(file, end)
                raise
        finally:
            os.close(file)

    def _whole(self, file: int) -> int:
        """The length of the complete lines; an incomplete line after a crash is removed."""
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            size = os.pread(file, size, 0).rfind(b"\n") + 1
            os.ftruncate(file, size)
        return size

    def keep(self, entries: Sequence[Entry | Unreadable]) -> None:
        """Remove all other entries, atomically and durably."""
        if not entries and not self.path.exists():
            return
        try:
            if entries:
                durable.write(self.path, "".join(map(_line, entries)).encode(), 0o600)
            else:
                durable.remove(self.path)
        except OSError as error:
            raise ApplyError(f"{self.path}: the journal can't be written: {error.strerror}") from error
