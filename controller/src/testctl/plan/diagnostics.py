# SPDX-License-Identifier: Apache-2.0
"""Places in the user's file, and the list of faults."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from testctl_agent.spec.errors import PlanError

MAX_PROBLEMS = 20
STOP = 200
"""Problems beyond MAX_PROBLEMS after which nothing more is read."""
_LONGEST_LINE = 400
_LONGEST_WORD = 60


@dataclass(frozen=True, order=True)
class Place:
    """A file, line and column (both from 1); line 0 means the source as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @classmethod
    def of(cls, text: str) -> Place:
        """The inverse of str(); other text is taken as a file name."""
        match = re.fullmatch(r"(.+):([1-9][0-9]{0,8}):([0-9]{1,9})", text, re.DOTALL)
        return cls(match[1], int(match[2]), int(match[3])) if match else cls(text)


@dataclass
class Problems:
    """Collects errors, so that a user sees all of them at once."""

    lines: list[str] = field(default_factory=list)
    more: int = 0

    def add(self, place: Place, text: str) -> None:
        """Raises PlanError after MAX_PROBLEMS."""
        line = f"{place}: {text}"
        if len(line) > _LONGEST_LINE:
            line = line[: _LONGEST_LINE - 1] + "…"
        if line in self.lines:
            return
        if len(self.lines) < MAX_PROBLEMS:
            self.lines.append(line)
        else:
            self.more += 1
            if self.more == STOP:
                self.check()

    def __bool__(self) -> bool:
        return bool(self.lines)

    def check(self) -> None:
        """Raise a PlanError with every problem so far, if there is any."""
        if self.lines:
            least = "at least " if self.more >= STOP else ""
            tail = [f"… and {least}{self.more} more"] if self.more else []
            raise PlanError("\n".join(self.lines + tail))


def show(word: str) -> str:
    """A word of the user's file as an error shows it: short, and never with control characters."""
    clipped = word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…"
    return clipped if clipped.isprintable() and clipped.strip() else repr(clipped)


def suggest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?", or nothing when no known word is near."""
    near = difflib.get_close_matches(word[:_LONGEST_WORD], sorted(set(known)), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""
