# SPDX-License-Identifier: Apache-2.0
"""The groups of commands in `testctl --help`, in the order in which they are shown."""

from __future__ import annotations

import typer
from typer.models import CommandInfo, DefaultPlaceholder, TyperInfo

WRITE = "Write a plan"
RUN = "Run"
LOOK = "Look at results"
COMPARE = "Compare and find causes"
SET_UP = "Set up"
MORE = "Of other packages"


def fill(app: typer.Typer) -> None:
    """Put the commands that are in no group into one of their own, below the others."""
    commands: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for command in commands:
        if isinstance(command.rich_help_panel, DefaultPlaceholder):
            command.rich_help_panel = MORE
