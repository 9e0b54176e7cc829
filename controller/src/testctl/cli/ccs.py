# SPDX-License-Identifier: Apache-2.0
"""testctl cc new, testctl cc check."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="The project's congestion controls, lab/cc/tcp_NAME.c.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="at most 15 letters, digits and '_'")]


@app.command()
def new(name: Name) -> None:
    """Start a congestion control that compiles, and its test."""
    from testctl.lab import cc

    source, test = cc.create(name)
    print(source)
    if test:
        print(f"{test}\ntest it:       python -m pytest {test}")
    print(f"check it:      testctl cc check {name}")
    print(f"in the lab:    testctl lab build 6.12, then [hosts, cc, {name}] in a plan")


@app.command()
def check(name: Name) -> None:
    """Compile one for this machine and as BPF; as root, show it to this kernel's verifier."""
    from testctl.lab import cc

    for line in cc.check(name):
        print(line, flush=True)
