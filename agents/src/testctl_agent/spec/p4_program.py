# SPDX-License-Identifier: Apache-2.0
"""A switch's P4 program of the user's, and the rows of its tables, as values of a plan.

A program is one text, "p4 NAME " and the JSON that p4c makes for BMv2, compressed, in base64: so what a point ran is in
its tuples.  Who runs a point has compiled it: PROGRAMS names the directory, and key() the one in it.

Rows are a JSON object, as Rows reads it: {"rows": […], "groups": {…}, "mirrors": {…}, "registers": […]}.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import ApplyError

NONE = "none"
PROGRAMS = "TESTCTL_PROGRAMS"
P4C = "TESTCTL_P4C"
OBJECT = "program.o"
MAX_CHARS = 2**20
"""Of a value: as many as an agent takes (engine/limits.py)."""
MAX_JSON_BYTES = 16 * 2**20
_WORD, _ENTRIES = "p4 ", "entries "


def show(name: str, text: bytes) -> str:
    """The value of a program.  Raises ValueError for one that is too large."""
    value = f"{_WORD}{name} {base64.b64encode(zlib.compress(text, 9)).decode()}"
    if len(value) > MAX_CHARS:
        raise ValueError(f"want a program of at most {MAX_CHARS} characters, packed; got {len(value)}")
    return value


def parse(value: str) -> tuple[str, bytes]:
    """A program's name, and its JSON.  Raises ValueError."""
    try:
        name, packed = value.removeprefix(_WORD).split(" ")
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(base64.b64decode(packed, validate=True), MAX_JSON_BYTES)
        if not value.startswith(_WORD) or not unpacker.eof:
            raise ValueError
    except (ValueError, binascii.Error, zlib.error):
        raise ValueError(
            f"want a path such as ./codel.p4, or a program as testctl writes it; got {value[:40]!r}"
        ) from None
    return name, text


def canonical(value: str) -> str:
    """The value itself.  Raises ValueError."""
    if value != NONE:
        parse(value)
    return value


def of_file(data: bytes, place: Path) -> str:
    """The value of a file: BMv2's JSON, or P4 that p4c compiles.  Raises ValueError."""
    text = data if data.lstrip()[:1] == b"{" else _compiled(place)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"want the JSON that p4c makes for BMv2, or P4; got {error}") from error
    if not isinstance(raw, dict) or not {"parsers", "pipelines", "deparsers"} <= raw.keys():
        raise ValueError(
            "want the JSON that p4c makes for BMv2; got another JSON, without parsers, pipelines or deparsers"
        )
    return show(place.name, json.dumps(raw | {"program": place.name}, separators=(",", ":")).encode())


def _compiled(place: Path) -> bytes:
    """What p4c makes of P4.  Raises ValueError with its first error."""
    import shutil
    import subprocess
    import tempfile

    program = os.environ.get(P4C) or shutil.which("p4c-bm2-ss")
    if program is None:
        raise ValueError(f"want p4c-bm2-ss on PATH or at ${P4C}, or the JSON that it makes; got none")
    with tempfile.TemporaryDirectory(prefix="testctl-p4-") as work:
        made = Path(work) / "program.json"
        argv = [program, "--arch", "v1model", "-o", str(made), place.name]
        try:
            done = subprocess.run(
                argv, cwd=place.parent, capture_output=True, text=True, errors="replace", timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ValueError(f"want {program} to compile it; got {error}") from error
        if done.returncode or not made.is_file():
            lines = done.stderr.splitlines()
            first = next((line for line in lines if "error" in line), lines[0] if lines else f"exit {done.returncode}")
            raise ValueError(f"p4c: {first.strip()}")
        return made.read_bytes()


def key(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def directory(of_key: str) -> Path:
    return Path(os.environ.get(PROGRAMS, "")) / of_key


def folder(value: str) -> Path:
    """Where it was compiled to.  Raises ApplyError."""
    place = directory(key(value))
    if not (place / OBJECT).is_file():
        raise ApplyError(f"switch, program: want {parse(value)[0]} compiled at {place}; got none")
    return place


def show_entries(text: str) -> str:
    """The value of a file with rows.  Raises ValueError for one that is too large."""
    value = f"{_ENTRIES}{text}"
    if len(value) > MAX_CHARS:
        raise ValueError(f"want at most {MAX_CHARS} characters; got {len(value)}")
    return value


def entries_of_file(data: bytes, place: Path) -> str:
    """The value of a file: the tutorials' runtime JSON, or lines of simple_switch_CLI.  Raises ValueError."""
    text = data.decode("utf-8", "replace")
    raw: dict[str, Any]
    if text.lstrip()[:1] == "{":
        try:
            raw = {"runtime": json.loads(text)}
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno}, column {error.colno}: want JSON; {error.msg}") from error
        except RecursionError:
            raise ValueError("want JSON of some levels; got more than can be read") from None
    else:
        lines = ((number, line.partition("#")[0].split()) for number, line in enumerate(text.splitlines(), 1))
        raw = {"cli": [line for line in lines if line[1]]}
    return show_entries(json.dumps({"file": place.name, **raw}, separators=(",", ":")))


def parse_entries(value: str) -> Any:
    """The JSON of a value of rows.  Raises ValueError."""
    if not value.startswith(_ENTRIES):
        raise ValueError(f"want a path such as ./entries.json, or rows as testctl writes them; got {value[:40]!r}")
    try:
        return json.loads(value.removeprefix(_ENTRIES))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"want a path such as ./entries.json, or rows as testctl writes them; got {value[:40]!r}"
        ) from error


def canonical_entries(value: str) -> str:
    if value != NONE:
        parse_entries(value)
    return value


@dataclass(frozen=True)
class Row:
    """A row of a table, or with `keys` None its default action; a key is ["exact", v], ["lpm", v, length], ["ternary",
    v, mask] or ["range", low, high]."""

    table: str
    keys: dict[str, list[Any]] | None
    action: str
    params: dict[str, int]
    priority: int = 0


Replicated = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""Multicast groups or clone sessions: the number of each, and the port and instance of each copy."""


@dataclass(frozen=True)
class Rows:
    """All that a program's control plane is to set; registers: (name, cell, value)."""

    rows: tuple[Row, ...] = ()
    groups: Replicated = ()
    mirrors: Replicated = ()
    registers: tuple[tuple[str, int, int], ...] = ()

    def to_json(self) -> str:
        return json.dumps(
            {
                "rows": [vars(row) for row in self.rows],
                "groups": self.groups,
                "mirrors": self.mirrors,
                "registers": self.registers,
            },
            separators=(",", ":"),
        )

    @classmethod
    def of(cls, raw: Any) -> Rows:
        """What to_json wrote.  Raises ValueError."""
        try:
            groups, mirrors = (
                tuple(
                    (int(number), tuple((int(port), int(copy)) for port, copy in members)) for number, members in some
                )
                for some in (raw["groups"], raw["mirrors"])
            )
            registers = tuple((str(name), int(at), int(value)) for name, at, value in raw["registers"])
            return cls(tuple(Row(**row) for row in raw["rows"]), groups, mirrors, registers)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"want rows that name their tables and actions by number; got {str(raw)[:60]}") from error
