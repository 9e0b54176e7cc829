# SPDX-License-Identifier: Apache-2.0
"""Types of parameter values: how a value is read, checked, shown and described."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from testctl_agent.spec.units import Quantity

Value = int | str | bool | float
"""A parsed value.  A Quantity is an int in its base unit."""


def shown(value: object) -> str:
    """A value as a plan writes it: a switch is on or off."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


class ValueType(Protocol):
    """Contract: `parse` returns a Value or raises ValueError "want …; got …"."""

    @property
    def want(self) -> str: ...

    def parse(self, raw: object) -> Value: ...

    def schema(self) -> dict[str, Any]: ...


@runtime_checkable
class FileType(ValueType, Protocol):
    """A type whose value may also be a file's: a word with a / in it that is no value itself is the file's path.

    file  what the file has, and where it lies, as the value's text; None: there are no such files.  ValueError
          "line N: want …; got …"
    """

    @property
    def file(self) -> Callable[[bytes, Path], str] | None: ...


def _refuse(want: str, raw: object) -> ValueError:
    return ValueError(f"want {want}; got {raw!r}" if isinstance(raw, str) else f"want {want}; got {raw}")


@dataclass(frozen=True)
class Choice:
    """One of a few values (strings or integers)."""

    values: tuple[str | int, ...]

    @property
    def want(self) -> str:
        return "one of " + ", ".join(str(v) for v in self.values)

    def parse(self, raw: object) -> Value:
        for value in self.values:
            if not isinstance(raw, bool) and (raw == value or str(raw) == str(value)):
                return value
        raise _refuse(self.want, raw)

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Switch:
    """on or off (also YAML's true and false)."""

    want: str = "on or off"

    def parse(self, raw: object) -> Value:
        if isinstance(raw, bool):
            return raw
        if raw in ("on", "off"):
            return raw == "on"
        raise _refuse(self.want, raw)

    def schema(self) -> dict[str, Any]:
        return {"enum": ["on", "off", True, False]}


@dataclass(frozen=True)
class Int:
    """A whole number in [least, most]."""

    least: int
    most: int
    unit: str = ""

    @property
    def want(self) -> str:
        return f"a whole number from {self.least} to {self.most}" + (f" {self.unit}" if self.unit else "")

    def parse(self, raw: object) -> Value:
        if isinstance(raw, str) and re.fullmatch(r"-?[0-9]{1,19}", raw):
            raw = int(raw)
        if isinstance(raw, bool) or not isinstance(raw, int) or not self.least <= raw <= self.most:
            raise _refuse(self.want, raw)
        return int(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Amount:
    """A Rate, Bytes or Duration in [least, most], given in the base unit.

    `none` is a word that stands for "not set" and parses to itself ("" = no such word).
    """

    of: type[Quantity]
    least: int = 0
    most: int = 2**62
    none: str = ""

    @property
    def want(self) -> str:
        text = (
            f"{self.of.want}, from {self.of(self.least)} to {self.of(self.most)}" if self.most < 2**62 else self.of.want
        )
        return f"{text}, or {self.none}" if self.none else text

    def parse(self, raw: object) -> Value:
        if self.none and raw == self.none:
            return self.none
        try:
            value = self.of.parse(raw)
        except ValueError as error:
            raise _refuse(self.want, raw) from error
        if not self.least <= value <= self.most:
            raise _refuse(self.want, raw)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "integer"], "description": self.want}


@dataclass(frozen=True)
class Text:
    """Text that matches a pattern as a whole."""

    pattern: str
    want: str

    def parse(self, raw: object) -> Value:
        text = str(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else None
        if text is None or re.fullmatch(self.pattern, text) is None:
            raise _refuse(self.want, raw)
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number"], "description": self.want}
