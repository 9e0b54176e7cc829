# SPDX-License-Identifier: Apache-2.0
"""The command line's own list of commands, for tests that are about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


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
