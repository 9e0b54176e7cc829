# SPDX-License-Identifier: Apache-2.0
"""Commands of other distributions.

A distribution declares them in its pyproject.toml, by entry points whose names are the commands' words:

    [project.entry-points."testctl.commands"]
    upload = "testctl_influx.command:upload"

The value is a function with typer's annotations, or a typer.Typer, whose commands are then subcommands of the word.
Entry points are looked up, and their modules imported, only for a word that is no command of the controller, and for
the list of all commands.  A command of the controller is never replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import typer
from testctl_agent.spec.errors import PlanError, TestbedError
from typer.core import TyperGroup
from typer.main import get_group

from testctl.cli import panels
from testctl.cli.help import App

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "testctl.commands"
KNOWN = {
    "upload": ("testctl-influx", "plugins/influx"),
    **dict.fromkeys(("kernel", "keys", "restore", "status"), ("testctl-rack", "plugins/rack")),
}
"""The commands of this repository's other distributions: word → (distribution, its directory)."""


class Commands(TyperGroup):
    """The controller's commands and, as soon as another word is looked up, the commands of other distributions."""

    def list_commands(self, ctx: Any) -> list[str]:
        self._extend()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or None.  Raises PlanError for one of KNOWN whose distribution is not installed."""
        if cmd_name not in self.commands:
            self._extend()
        if cmd_name not in self.commands and cmd_name in KNOWN:
            name, place = KNOWN[cmd_name]
            raise PlanError(
                f"testctl {cmd_name}: the distribution {name} has this command, and it is not installed "
                f"(make setup installs {place})"
            )
        return super().get_command(ctx, cmd_name)

    def _extend(self) -> None:
        for word, made in _offered():
            if word not in self.commands:
                made.rich_help_panel = made.rich_help_panel or panels.MORE
                self.commands = {**self.commands, word: made}


def _offered() -> Iterator[tuple[str, Any]]:
    """(word, command) of all installed distributions; a command that can't be used gives the reason when it is run."""
    from importlib.metadata import entry_points  # which nothing else of the command line imports

    entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _distribution(entry)))
    for word, offers in groupby(entries, key=lambda entry: entry.name):
        try:
            yield word, _command(word, list(offers))
        except TestbedError as error:
            yield word, _broken(word, error)


def _command(word: str, offers: list[EntryPoint]) -> Any:
    """The command that an entry point names.  Raises TestbedError: it is there twice, not importable, or no command."""
    names = ", ".join(map(_distribution, offers))
    if len(offers) > 1:
        raise TestbedError(f"testctl {word}: want this command of one distribution; got it of {names}")
    where = f"testctl {word}: {offers[0].value} of the distribution {names}"
    app = App(add_completion=False)
    try:
        value = offers[0].load()
        if isinstance(value, typer.Typer):
            app.add_typer(value, name=word)
        elif callable(value):
            app.command(word)(value)
        else:
            raise TypeError(f"want a function or a typer.Typer; got {type(value).__name__}")
        return get_group(app).commands[word]
    except (Exception, SystemExit) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise TestbedError(f"{where} can't be used: {why}") from error


def _broken(word: str, error: TestbedError) -> Any:
    """A command that raises the error, whatever its options, --help too."""
    app = App(add_completion=False)

    def run() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(word, help=str(error), context_settings=anything)(run)
    return get_group(app).commands[word]


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "?"
