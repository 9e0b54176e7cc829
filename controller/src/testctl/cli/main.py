# SPDX-License-Identifier: Apache-2.0
"""The command line: `testctl`.  Each command's body lives in a file of its own."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any

import typer
from testctl_agent.spec.errors import PlanError, TestctlError
from testctl_agent.spec.untrusted import words

# Before numpy is imported: nothing here multiplies matrices, and the threads that wait for it are awake at first.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from testctl import __version__
from testctl.cli import (
    aa,
    analyse,
    bisect,
    bug,
    ccs,
    certify,
    compare,
    corpus,
    coverage,
    export,
    history,
    info,
    labs,
    mutate,
    new,
    nightly,
    p4,
    packetdrill,
    panels,
    papers,
    prune,
    releases,
    replay,
    reproduce,
    runs,
    serve,
    shows,
    shrink,
    verdict_files,
    vocabulary,
)
from testctl.cli.extensions import Commands
from testctl.cli.help import App, Command


def _version(requested: bool) -> None:
    if requested:
        print(f"testctl {__version__}")
        raise typer.Exit


app = App(
    cls=Commands,
    help="Test TCP: plans of (entity, parameter, value) tuples on a real kernel in virtual time.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What stands before the command."""


COMMANDS: Mapping[str, Sequence[Callable[..., None]]] = {
    panels.WRITE: (
        new.new, runs.plan, vocabulary.params, vocabulary.metrics, vocabulary.rules, vocabulary.topologies,
        vocabulary.schema,
    ),
    panels.RUN: (runs.run, nightly.nightly, aa.aa, papers.papers, packetdrill.packetdrill, certify.certify),
    panels.LOOK: (
        shows.show, shows.report, shows.series, analyse.analyse, coverage.coverage, export.export, serve.serve,
    ),
    panels.COMPARE: (
        compare.compare, history.history, releases.releases, bisect.bisect, mutate.mutate, corpus.corpus,
        shrink.shrink, replay.replay, reproduce.reproduce,
    ),
    panels.SET_UP: (info.doctor, info.files, prune.prune),
}  # fmt: skip
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(cls=shows.Series if command is shows.series else Command, rich_help_panel=panel)(command)
app.add_typer(labs.app, name="lab", rich_help_panel=panels.SET_UP)
app.add_typer(ccs.app, name="cc", rich_help_panel=panels.SET_UP)
app.add_typer(p4.app, name="p4", rich_help_panel=panels.SET_UP)


@cache
def _command() -> Any:
    """All commands.  typer reads the annotations of all for that, so a process does it once."""
    return typer.main.get_command(app)


def main() -> None:
    """Run a command; 0 pass, 1 an expectation failed, 2 bad plan or usage, 3 broken or invalid, or a bug."""
    try:
        _command()(prog_name="testctl")
    except TestctlError as error:
        print(error, file=sys.stderr)
        verdict_files.print_problems(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of the output (head, less) has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            sys.exit(_bug(error))
        # No command looks at the length of names that it is given.
        path = f"{str(error.filename)[:60]}…"
        print(words(f"{path}: want a path that the file system takes; got a name too long for it"), file=sys.stderr)
        sys.exit(PlanError.exit_code)
    except Exception as error:  # noqa: BLE001  the last one who can say it in a sentence
        sys.exit(_bug(error))


def _bug(error: Exception) -> int:
    print(words(f"testctl: a bug: {bug.sentence(error)}"), file=sys.stderr)
    return bug.EXIT


if __name__ == "__main__":
    main()
