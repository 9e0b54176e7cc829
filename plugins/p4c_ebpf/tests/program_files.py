# SPDX-License-Identifier: Apache-2.0
"""The compiled programs of this checkout: those of the tests and the testbed's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "p4" / "build"


@dataclass(frozen=True)
class Program:
    """BMv2 JSON and P4Info, as p4c writes them."""

    name: str
    json: Path
    info: Path


def programs() -> list[Program]:
    """Every program NAME.json that has a NAME.p4info.txtpb beside it."""
    found = []
    for folder in (HERE / "programs", BUILD):
        for path in sorted(folder.glob("*.json")):
            info = path.with_suffix(".p4info.txtpb")
            if info.exists():
                found.append(Program(path.stem, path, info))
    return found
