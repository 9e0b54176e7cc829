# SPDX-License-Identifier: Apache-2.0
"""The values that were there before, on disk, so that a crash loses none of them."""

from __future__ import annotations

import json
import os
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


class Journal:
    """Entries in the order of their changes; a file of JSON lines, synced at every entry.

    The file is there exactly while something is changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> list[Entry]:
        """All entries, oldest first.  A line cut by a crash was never acted on and is left out."""
        if not self._path.exists():
            return []
        entries = []
        lines = self._path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                entries.append(Entry(**json.loads(line)))
            except (ValueError, TypeError) as error:
                raise ApplyError(f"{self._path}:{number}: not a journal entry: {line!r}") from error
        return entries

    def add(self, entry: Entry) -> None:
        """Write an entry down, for good, before the change it is for."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry.__dict__) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def keep(self, entries: list[Entry]) -> None:
        """Forget all entries but these."""
        if not entries:
            self._path.unlink(missing_ok=True)
            return
        fresh = self._path.with_suffix(".new")
        fresh.write_text("".join(json.dumps(e.__dict__) + "\n" for e in entries), encoding="utf-8")
        fresh.replace(self._path)
