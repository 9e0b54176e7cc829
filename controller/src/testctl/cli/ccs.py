# SPDX-License-Identifier: Apache-2.0
"""testctl cc new, list, check."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from testctl.cli.help import App
from testctl.lab import cc

app = App(help="The project's congestion controls, lab/cc/tcp_NAME.c.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="at most 15 letters, digits and '_'")]


@app.command()
def new(name: Name) -> None:
    """Start a congestion control that compiles, and its test."""
    from testctl.results.provenance import from_here

    source, test = cc.create(name)
    print(source)
    if test:
        print(f"{test}\ntest it:       {from_here(sys.executable)} -m pytest {test}")
    print(f"check it:      testctl cc check {name}")
    print(f"in a plan:     [hosts, cc, {name}]")
    print("  at once:     testctl run PLAN --testbed netns, as root: loaded into this kernel as BPF")
    print("  in the lab:  testctl lab build 6.12, some minutes, then testctl run PLAN")


@app.command("list")
def list_ccs() -> None:
    """The congestion controls that a plan can name: those of lab/cc and Linux's own."""
    for name, where in cc.names().items():
        print(f"{name:<16} {where}")


@app.command()
def check(name: Name) -> None:
    """Compile one for this machine and as BPF; as root, show it to this kernel's verifier."""
    for line in cc.check(name):
        print(line, flush=True)
