# SPDX-License-Identifier: Apache-2.0
"""A machine's power and console, by the commands that its inventory gives."""

from __future__ import annotations

import re

from testctl.system.subprocesses import run
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.untrusted import words

from testctl_rack.inventory_file import Machine

COMMAND_S = 120.0
LINES = 12
"""Of a console's last lines that an error has."""
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What moves a terminal's cursor, as GRUB does."""


def cycle(machine: Machine) -> None:
    """Switch a machine off and on.  Raises TestbedError: no command for it, or one that fails."""
    if "power_cycle" in machine.commands:
        _run(machine, "power_cycle")
        return
    if lacking := [what for what in ("power_off", "power_on") if what not in machine.commands]:
        raise TestbedError(
            f"{machine}: want testctl_power_cycle, or testctl_power_off and testctl_power_on, in the inventory, to "
            f"bring it back; got no testctl_{lacking[0]}"
        )
    for what in ("power_off", "power_on"):
        _run(machine, what)


def _run(machine: Machine, what: str) -> str:
    """The output of one of a machine's commands.

    Raises TestbedError with the variable, the program and what it says, without the other words of the command: one of
    them may be a password, and errors go to results, reports and databases.
    """
    command = machine.commands[what]
    try:
        return run(command, timeout_s=COMMAND_S)
    except TestbedError as error:
        text = str(error).removeprefix(" ".join(command)).removeprefix(command[0]).removeprefix(": ")
        for word in sorted(set(command[1:]), key=len, reverse=True):
            text = text.replace(word, "…")
        raise TestbedError(f"{machine}: testctl_{what}: {command[0]}: {text}") from None


def last_lines(machine: Machine) -> str:
    """The last lines of its console, for an error, and before them a panic; why they can't be had where that is so."""
    if "console" not in machine.commands:
        return "the inventory has no testctl_console for its last lines"
    try:
        text = _run(machine, "console")
    except TestbedError as error:
        return f"its console can't be read: {error}"
    lines = [words(line.strip()) for line in CURSOR.sub("", text).splitlines() if line.strip()]
    before = [line for line in lines[:-LINES] if "Kernel panic" in line][-1:]
    return "the last lines of its console: " + (" | ".join([*before, *lines[-LINES:]]) or "none")
