# SPDX-License-Identifier: Apache-2.0
"""The BMv2 JSON of a P4 program, read with types: every error says where in the P4 source it is.

Source: behavioral-model, docs/JSON_format.md.  p4c writes a `source_info` beside most objects; an
error carries the nearest one around it ("p4/v1model/x.p4:12"), or else the place in the JSON
("x.json: headers[2].name").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from p4c_ebpf.defaults import complete
from p4c_ebpf.errors import ProgramError

MAJOR = 2
"""The major version of the format that is understood."""

_DEEPEST = 200


@dataclass(frozen=True)
class Node:
    """A value in the document and where it stands.  Every access that fails raises ProgramError."""

    value: Any
    file: str
    path: str = ""
    source: str = ""
    fragment: str = ""

    @property
    def where(self) -> str:
        if self.source:
            return self.source
        return f"{self.file}: {self.path}" if self.path else self.file

    def fail(self, text: str) -> NoReturn:
        raise ProgramError(f"{self.where}: {text}")

    def cannot(self, what: str) -> NoReturn:
        """Refuse what is right P4, but is not translated."""
        place = f"{self.fragment}: " if self.fragment else ""
        raise ProgramError(f"{self.where}: {place}can't be translated: {what}")

    def _wrong(self, want: str) -> NoReturn:
        shown = repr(self.value) if isinstance(self.value, str | int | float | bool) else type(self.value).__name__
        raise ProgramError(f"{self.file}: {self.path or 'the document'}: want {want}; got {shown[:80]}")

    def _child(self, value: Any, step: str) -> Node:
        path = f"{self.path}{step}".lstrip(".")
        if path.count(".") > _DEEPEST:
            raise ProgramError(f"{self.file}: {path[:40]}…: nested more than {_DEEPEST} deep")
        source, fragment = self.source, self.fragment
        info = value.get("source_info") if isinstance(value, dict) else None
        if isinstance(info, dict) and isinstance(info.get("filename"), str) and isinstance(info.get("line"), int):
            source, fragment = f"{info['filename']}:{info['line']}", str(info.get("source_fragment", ""))[:60]
        return Node(value, self.file, path, source, fragment)

    def has(self, key: str) -> bool:
        """The member is there and is not null."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def __getitem__(self, key: str) -> Node:
        if not isinstance(self.value, dict):
            self._wrong("an object")
        if key not in self.value:
            raise ProgramError(f"{self.file}: {self.path or 'the document'}: {key!r} is missing")
        return self._child(self.value[key], f".{key}")

    def items(self) -> list[Node]:
        """The members of an array."""
        if not isinstance(self.value, list):
            self._wrong("an array")
        return [self._child(one, f"[{at}]") for at, one in enumerate(self.value)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items())

    def members(self) -> dict[str, Node]:
        if not isinstance(self.value, dict):
            self._wrong("an object")
        return {key: self._child(one, f".{key}") for key, one in self.value.items()}

    def pair(self) -> tuple[Node, Node]:
        both = self.items()
        if len(both) != 2:
            self._wrong("an array of two")
        return both[0], both[1]

    def section(self, key: str) -> list[Node]:
        """The members of an array that may be left out."""
        return self[key].items() if self.has(key) else []

    @property
    def null(self) -> bool:
        return self.value is None

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._wrong("text")
        return str(self.value)

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self._wrong("true or false")
        return bool(self.value)

    def number(self, low: int = 0, high: int = 2**63 - 1) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool) or not low <= self.value <= high:
            self._wrong(f"a whole number from {low} to {high}")
        return int(self.value)

    def size(self, most: int, what: str, least: int = 1) -> int:
        """A whole number from `least`; one of more than `most` is right P4, but is not translated."""
        number = self.number(least)
        if number > most:
            self.cannot(f"{number} {what}; want at most {most}")
        return number

    def hexadecimal(self) -> int:
        """A `hexstr`: "0x1f", "-0x01"."""
        text = self.text()
        digits = text.removeprefix("-").removeprefix("0x")
        if not digits or len(digits) > 512 or not all(c in "0123456789abcdefABCDEF" for c in digits):
            self._wrong("hexadecimal digits")
        number = int(digits, 16)
        return -number if text.startswith("-") else number

    def kind(self) -> str:
        """`type` of a type-value object."""
        return self["type"].text()


def unwrap(node: Node) -> Node:
    """What lies inside "expression" wrappers: a leaf, or the object with `op`."""
    while not node.has("op") and node.has("type") and node["type"].value == "expression":
        node = node["value"]
    return node


def parse(text: str, name: str) -> Node:
    """The root of a document; `name` is its file's, for errors."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"{name}: not JSON: {error}") from error
    if isinstance(value, dict):
        complete(value)
    root = Node(value, name)
    if root["__meta__"].has("version"):
        version = root["__meta__"]["version"].items()
        if len(version) != 2 or version[0].value != MAJOR:
            got = root["__meta__"]["version"].value
            raise ProgramError(f"{name}: BMv2 JSON: want version {MAJOR}.x; got {'.'.join(map(str, got))[:40]}")
        version[1].number()
    return root


def load(path: Path) -> Node:
    """Read a file written by p4c-bm2-ss."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(f"{path}: can't be read: {error}") from error
    return parse(text, str(path))
