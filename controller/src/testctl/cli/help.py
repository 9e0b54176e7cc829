# SPDX-License-Identifier: Apache-2.0
"""Help of a command: its options in groups, each beside the name of its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

from testctl.cli import panels


class Command(TyperCommand):
    """A command whose help has no column of types."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super(TyperCommand, self).format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        of = {option: group for group, options in panels.OPTIONS.items() for option in options.split()}
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", *panels.OPTIONS, "Options")}
        for parameter in self.get_params(ctx):
            if not (record := parameter.get_help_record(ctx)):
                continue
            if parameter.param_type_name == "argument":
                groups["Arguments"].append((record[0].partition(" <")[0], record[1]))
            else:
                groups[next((of[name] for name in parameter.opts if name in of), "Options")].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class App(typer.Typer):
    """Commands with that help."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **more: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, cls=cls, **more)
