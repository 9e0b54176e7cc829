# SPDX-License-Identifier: Apache-2.0
"""The compiled programs of this checkout: those of the tests and the testbed's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path(__file__).parents[3] / "p4" / "build"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))

Document = dict[str, Any]


def committed(name: str) -> Document:
    """The BMv2 JSON of a program of the tests."""
    found: Document = json.loads((PROGRAMS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Program:
    """BMv2 JSON and P4Info, as p4c writes them."""

    name: str
    json: Path
    info: Path


def programs() -> list[Program]:
    """Every program NAME.json that has a NAME.p4info.txtpb beside it."""
    found = []
    for folder in (PROGRAMS, BUILD):
        for path in sorted(folder.glob("*.json")):
            info = path.with_suffix(".p4info.txtpb")
            if info.exists():
                found.append(Program(path.stem, path, info))
    return found
