# SPDX-License-Identifier: Apache-2.0
"""Notes of an agent's description by which a controller knows the machine's boots."""

from __future__ import annotations

from pathlib import Path

BOOT = "boot"
"""The id of this boot of the machine."""
WAS = "kernel after this boot"
"""The release that the machine is to have again; it was booted into another one for one boot."""
_COMMAND_LINE = Path("/proc/cmdline")
_ARGUMENT = "testctl.was="
"""On the command line of a kernel that was booted once (the controller's boot_once.py)."""


def notes(boot: str) -> dict[str, str]:
    """The notes of this machine, whose boot has that id."""
    arguments = _COMMAND_LINE.read_text(encoding="utf-8", errors="replace").split()
    was = [argument.removeprefix(_ARGUMENT) for argument in arguments if argument.startswith(_ARGUMENT)]
    return {BOOT: boot} | ({WAS: was[-1]} if was else {})
