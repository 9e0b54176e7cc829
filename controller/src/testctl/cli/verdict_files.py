# SPDX-License-Identifier: Apache-2.0
"""Options of commands that write verdicts for CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from testctl_agent.spec.errors import PlanError

if TYPE_CHECKING:
    from testctl.results import Run

Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="write verdicts as JUnit XML")]
Sarif = Annotated[Path | None, typer.Option("--sarif", metavar="FILE", help="write verdicts as SARIF 2.1.0")]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="write verdicts as Markdown")]
Github = Annotated[
    bool | None,
    typer.Option(
        "--github/--no-github",
        help="annotations for GitHub Actions, and a page for $GITHUB_STEP_SUMMARY (default: where GITHUB_ACTIONS=true)",
        show_default=False,
    ),
]


def write(
    run: Run, plan: Path | None, files: dict[str, Path | None], github: bool = False, out: TextIO = sys.stdout
) -> None:
    """Write the verdicts of a run to the files {format: file} that are wanted, and what GitHub shows of them to `out`.

    plan: the plan's file; None: the run's copy of it
    """
    if not github and not any(files.values()):
        return

    from testctl.compare import github as of_github
    from testctl.compare import of_run, uri_of, write_verdicts
    from testctl.results.layout import PLAN

    judged = of_run(run, uri_of(run.path))
    write_verdicts(judged, files)
    if github:
        for line in of_github.of_verdicts(judged, str(plan or run.path / PLAN)):
            print(line, file=out)
        of_github.append_summary(judged)


def check(files: dict[str, Path | None]) -> None:
    """Raises PlanError for a file that can't be written, before a run is begun."""
    for form, path in files.items():
        if path is not None and not path.parent.is_dir():
            raise PlanError(f"--{form} {path}: want a file in an existing directory; {path.parent} is none")
        if path is not None and path.exists() and not path.is_file():
            raise PlanError(f"--{form} {path}: want a file to write; got a directory or a device")
    given = [path.resolve() for path in files.values() if path is not None]
    if twice := [path for path in given if given.count(path) > 1]:
        raise PlanError(f"want a file for each form; got {twice[0]} twice")


def on_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def print_problems(text: str) -> None:
    """Show an error in a plan at its place, where this is a job of GitHub Actions."""
    if on_github():
        from testctl.compare.github import of_problems

        for line in of_problems(text):
            print(line)
