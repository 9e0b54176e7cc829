# SPDX-License-Identifier: Apache-2.0
"""What a lab of several kernels does by lab/kernel/lab_links*.c: this kernel's links to the others, and one time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import commands

PARAMETERS = Path("/sys/module/testctl_links/parameters")
STAGES = ("ended", "drained")
"""In which the kernels wait for each other: all generators have ended, all connections have."""


def cut(part: dict[str, Any]) -> None:
    """Let the devices of links whose other end is elsewhere lead there (testctl/testbeds/lab_parts.py)."""
    _write("memory", f"{part['index']} {part['memory']}")
    for link in part["links"]:
        for words, (space, _) in (("{own} -", link["own"]), ("- {other}", link["other"])):
            devices = words.format(own=link["own"][1], other=link["other"][1])
            with commands.inside(space):
                _write("link", f"{link['number']} {link['kernel']} {int(link['ahead'])} {devices}")


def join() -> None:
    """Begin to share the time, when all kernels do."""
    _write("join", "1")


def wait_for_all(stage: str) -> None:
    _write("done", str(STAGES.index(stage)))


def leave() -> None:
    _write("leave", "1")


def waited_ns() -> str:
    """How long this kernel waited for the others, of the machine's time."""
    return (PARAMETERS / "waited_ns").read_text(encoding="ascii")


def _write(name: str, text: str) -> None:
    (PARAMETERS / name).write_text(text, encoding="ascii")
