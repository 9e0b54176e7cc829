# SPDX-License-Identifier: Apache-2.0
"""testctl lab build, testctl lab shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

app = typer.Typer(help="The virtual-time lab: its kernels, and a shell in it.", no_args_is_help=True)


@app.command()
def build(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="6.12 (default), 6.1, or a name for --source")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--source", metavar="DIR", help="any kernel tree; it is not changed")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1)] = os.cpu_count() or 1,
) -> None:
    """Build the lab's kernel from Debian's source package, with lab/cc built in."""
    from testctl_agent.spec.errors import PlanError

    from testctl.lab import kernel as kernels
    from testctl.lab.source import find

    if source and len(names or []) != 1:
        raise PlanError("lab build --source DIR: want one NAME for that kernel, which a plan's kernel tuple then uses")
    for name in names or ["6.12"]:
        origin = find(name, source)
        kernel = kernels.locate(origin)
        if not kernel.built:
            with _progress() as show:
                kernel = kernels.build(origin, show, jobs)
        if source:
            kernels.remember(kernel)
        print(f"kernel {name}: {kernel.binary}")


class _progress:
    """A bar on a terminal, a line every tenth elsewhere."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), disable=not sys.stderr.isatty(),
        )  # fmt: skip
        self._task = self._bar.add_task("", total=None)
        self._said = -1

    def __enter__(self) -> _progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._bar.update(self._task, description=what, completed=done, total=total)
        tenth = 10 * done // total
        if self._bar.disable and tenth != self._said:
            self._said = tenth
            print(f"{what}: {100 * done // total} %", file=sys.stderr, flush=True)


@app.command()
def shell(
    topology: Annotated[str, typer.Argument(help="a file of lab/topologies, such as pair")] = "pair",
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME")] = "6.12",
) -> None:
    """Open a shell inside a lab: `ip netns exec sender …`; leaving it ends the lab."""
    from testctl_agent.p4 import testbed_object
    from testctl_agent.spec.errors import TestbedError

    from testctl.lab import machine
    from testctl.plan import load_topology
    from testctl.testbeds.job import DEFAULT_BACKEND
    from testctl.testbeds.lab import built

    found = built(kernel)
    if found is None:
        raise TestbedError(f"kernel {kernel} is not built; build it with: testctl lab build {kernel}")
    point = {"topology": load_topology(topology).to_json(), "seed": 1, "kernel": kernel, "backend": DEFAULT_BACKEND}
    sys.exit(machine.shell(point, found.binary, testbed_object.compiled()))
