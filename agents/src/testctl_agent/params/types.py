# SPDX-License-Identifier: Apache-2.0
"""Value types that spec/types.py does not have."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec import largest, schedule
from testctl_agent.spec.types import Amount, Int, Value


@dataclass(frozen=True)
class OrNone:
    """A whole number, or the word none (which parses to itself)."""

    of: Int

    @property
    def want(self) -> str:
        return f"{self.of.want}, or none"

    def parse(self, raw: object) -> Value:
        if raw is None or raw == "none":
            return "none"
        try:
            return self.of.parse(raw)
        except ValueError as error:
            raise ValueError(f"want {self.want}; got {raw!r}") from error

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.of.schema(), {"const": "none"}]}


@dataclass(frozen=True)
class InSteps(Amount):
    """An Amount that is a multiple of `step`: the kernel takes it in a coarser unit than ours."""

    step: int = 1

    @property
    def want(self) -> str:
        return f"{super().want}, in steps of {self.of(self.step)}"

    def parse(self, raw: object) -> Value:
        value = super().parse(raw)
        if not isinstance(value, str) and int(value) % self.step:
            raise ValueError(f"want {self.want}; got {raw!r}")
        return value


@dataclass(frozen=True)
class Changing(Amount):
    """An Amount, or a schedule of such values (spec/schedule.py), kept as its canonical text.

    holds    whether a step of a schedule may be 0, also below `least`
    example  a schedule
    file     as of a FileType (spec/types.py)
    value    reads such a value's text
    """

    holds: bool = False
    example: str = ""
    file: Callable[[bytes, Path], str] | None = None
    value: Callable[[str], bool] = lambda text: False

    @property
    def want(self) -> str:
        path = ", or the path of a trace that begins at the plan, such as ./cellular.trace" if self.file else ""
        return f"{super().want}; or a schedule such as {self.example!r}{path}"

    def parse(self, raw: object) -> Value:
        if isinstance(raw, str) and self.file and self.value(raw):
            return raw
        if not schedule.is_schedule(raw):
            return super().parse(raw)
        try:
            return schedule.show(schedule.parse(str(raw), self._step), self.of)
        except ValueError as error:
            raise ValueError(f"{error}, in {str(raw)[:80]!r}") from error

    def _step(self, text: str) -> int | None:
        if self.none and text == self.none:
            return None
        value = self.of.parse(text)
        if not (self.least <= value <= self.most or (self.holds and not value)):
            raise ValueError(f"want from {self.of(self.least)} to {self.of(self.most)}; got {text!r}")
        return int(value)


@dataclass(frozen=True)
class Largest(Changing):
    """Sizes of packets: Changing, and behind each size may stand `icmp` (spec/largest.py)."""

    @property
    def want(self) -> str:
        return f"{super().want}; behind a size may stand {largest.ICMP}"

    def parse(self, raw: object) -> Value:
        if not largest.is_answered(raw):
            return super().parse(raw)
        try:
            return largest.canonical(str(raw), self._step)
        except ValueError as error:
            raise ValueError(f"{error}, in {str(raw)[:80]!r}") from error


@dataclass(frozen=True)
class Grammar:
    """Text of a small language; its value is the canonical text.

    canonical  gives it, or raises ValueError
    """

    want: str
    canonical: Callable[[str], str]

    def parse(self, raw: object) -> Value:
        if not isinstance(raw, str):
            raise ValueError(f"want {self.want}; got {raw}")
        return self.canonical(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "description": self.want}


@dataclass(frozen=True)
class FileText(Grammar):
    """A Grammar whose text a file gives, as of a FileType (spec/types.py)."""

    file: Callable[[bytes, Path], str] | None = None


TIMES = Grammar(
    "times such as 2s-3s, or several as in '2s-3s; 5s-5500ms', or none",
    lambda text: schedule.show_down(schedule.parse_down(text)),
)
"""When something is not: a link, or reading."""


@dataclass(frozen=True)
class Fields:
    """Text of whitespace-separated fields; its value has one space between them.

    count   how many whole numbers it has to be; 0: any printable text
    """

    count: int = 0

    @property
    def want(self) -> str:
        return f"{self.count} whole numbers with spaces between" if self.count else "a line of text"

    def parse(self, raw: object) -> Value:
        given = isinstance(raw, str | int | float) and not isinstance(raw, bool)
        fields = str(raw).split() if given else []
        numbers = all(re.fullmatch(r"[0-9]{1,19}", word) for word in fields)
        fits = numbers and len(fields) == self.count if self.count else str(raw).isprintable() or numbers
        if not fields or not fits:
            raise ValueError(f"want {self.want}; got {raw!r}")
        return " ".join(fields)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number"], "description": self.want}


@dataclass(frozen=True)
class Never:
    """Takes no value; `why` is in every refusal."""

    why: str

    @property
    def want(self) -> str:
        return f"no value: {self.why}"

    def parse(self, raw: object) -> Value:
        raise ValueError(f"want {self.want}; got {raw!r}")

    def schema(self) -> dict[str, Any]:
        return {"not": {}, "description": self.want}
