# SPDX-License-Identifier: Apache-2.0
"""The command line: a command as its user calls it, and its own list of commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTCTL = (sys.executable, "-m", "testctl.cli.main")


def call(
    where: Path, *words: str, code: int | None = 0, timeout_s: float = 900, **environment: object
) -> subprocess.CompletedProcess[str]:
    """A command that was run in a directory, with more in its environment; it ended with that code, None: with any."""
    env = os.environ | {name: str(value) for name, value in environment.items()}
    argv = [*TESTCTL, *words]
    done = subprocess.run(argv, cwd=where, env=env, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(the words, the click command) of each command of a group, those of its groups too."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def takes(command: Any, *metavars: str) -> bool:
    """Whether one of its arguments or options is one of these."""
    return any(word in metavars for one in command.params for word in (one.metavar or "").split("|"))
