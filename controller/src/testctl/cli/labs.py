# SPDX-License-Identifier: Apache-2.0
"""testctl lab: build, get, list, rm, test, shell, exec."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from testctl.cli import complete
from testctl.cli.lab_exec import exec_

if TYPE_CHECKING:
    from testctl.lab.kernel import Kernel

app = typer.Typer(help="The virtual-time lab: its kernels, and a shell in it.", no_args_is_help=True)
app.command("exec", context_settings={"allow_interspersed_args": False})(exec_)


@app.command()
def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]…", help="6.12 (default), 6.1, one of testctl lab get, or a name for --source"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", metavar="DIR[@REV]", help="any kernel tree, or a git revision of it; it is not changed"
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--for", metavar="PLAN", help="only where no built kernel serves this plan")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1)] = os.cpu_count() or 1,
    trace: Annotated[
        bool, typer.Option("--trace", help="also tracepoints and symbols, as NAME-trace: for replay --trace and --gdb")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="also KASAN, UBSAN, lockdep and other checks of itself, as NAME-debug; slower"),
    ] = False,
    test: Annotated[bool, typer.Option("--test/--no-test", help="the self-test of a kernel that was built")] = True,
) -> None:
    """Build the lab's kernel from Debian's source package, with lab/cc built in.

    The objects of a tree that is named with --source are kept: the next build compiles what changed.  A variant
    (--trace, --debug) is a kernel of its own, for a plan's kernel tuple as any other.
    """
    from testctl_agent.spec.errors import PlanError

    from testctl.lab import kernel as kernels
    from testctl.lab.inputs import Inputs
    from testctl.lab.source import find, split_revision

    variants = [name for name, given in (("trace", trace), ("debug", debug)) if given]
    if variants and plan:
        raise PlanError(f"lab build --for: want a plan whose kernel is the variant; --{variants[0]} is for NAME")
    if len(variants) > 1:
        raise PlanError("lab build: want one of --trace and --debug; the variant debug has tracepoints and symbols too")
    variant = variants[0] if variants else ""
    if source and len(names or []) != 1:
        raise PlanError("lab build --source DIR: want one NAME for that kernel, which a plan's kernel tuple then uses")
    served = _served(plan) if plan else {}
    asked = [f"{name}-{variant}" if variant else name for name in names or ([] if plan else ["6.12"])]
    for name in [*served, *(name for name in asked if name not in served)]:
        if name in served and (kernel := served[name]):
            print(f"kernel {name}: {kernel.binary}")
            continue
        origin = find(name, *split_revision(source), variant) if source else find(name)
        kernel = kernels.locate(name, Inputs.of(origin))
        built_now = False
        if not kernel.built:
            with _progress() as show:
                kernel = kernels.build(origin, show, jobs)
            _changed(kernel)
            if lacking := kernels.lacking(kernel):
                print(f"kernel {name}: its tree can't have {', '.join(lacking)}")
            built_now = True
        if source:
            kernels.remember(kernel)
        if built_now and test:
            _test(kernel)
        print(f"kernel {name}: {kernel.binary}")


def _test(kernel: Kernel) -> bool:
    """Test a kernel; whether it passed."""
    from testctl.execution.kernel_test import self_test

    found = self_test(kernel, lambda what: print(f"kernel {kernel.name}: {what}", file=sys.stderr))
    print(f"kernel {kernel.name}: self-test {found.summary}")
    return found.ok


def _changed(kernel: Kernel) -> None:
    """Name the files of the user's tree that changed since its last build."""
    from testctl.lab.kernel import CHANGED
    from testctl.system.text import first_of

    file = kernel.directory / CHANGED
    if file.is_file():
        names = file.read_text(encoding="utf-8").split()
        print(f"kernel {kernel.name}: changed since the last build of this tree: {first_of(names, 8) or 'nothing'}")


def _served(file: Path) -> dict[str, Kernel | None]:
    """The kernels that a plan names, and the built ones that serve it."""
    from testctl.lab.built import built
    from testctl.lab.kernel_ccs import ccs_of
    from testctl.metrics import metric_names
    from testctl.plan import load_plan
    from testctl.testbeds.point_spec import kernel_of

    points = load_plan(file, metrics=metric_names()).points
    found = {}
    for name in sorted({kernel_of(point) for point in points}):
        found[name] = built(name, ccs_of(point for point in points if kernel_of(point) == name))
    return found


@app.command()
def get(
    name: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="such as 7.3; none: list what there is")
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", metavar="NAME", help="a suite of Debian to look in; default: trixie-backports and sid"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines")] = False,
) -> None:
    """Download a kernel's source of a newer Debian into the cache, or list what can be had; needs no root.

    apt is run with sources, lists and downloads of its own: those of this machine stay as they are.
    """
    from dataclasses import asdict

    from testctl.lab.debian import SecondApt

    apt = SecondApt(suite or ())
    where = f"{apt.archive.uri} {', '.join(apt.suites)}"
    print(f"asked {where} (apt's lists in {apt.home}; this machine's own are not changed)", file=sys.stderr)
    apt.update()
    if name is None:
        found = apt.available()
        print(json.dumps([asdict(one) for one in found]) if as_json else "", end="\n" if as_json else "")
        for one in () if as_json else found:
            print(f"{one.name}  {one.version}  in {one.suite}; download it with: testctl lab get {one.name}")
        return
    got = apt.fetch(name)
    if as_json:
        print(json.dumps(asdict(got.available) | {"path": str(got.path), "new": got.new}))
        return
    what = f"linux-source-{name} {got.available.version} of {got.available.suite}"
    print(
        f"{'downloaded' if got.new else 'there already:'} {what}: {got.path} ({got.path.stat().st_size / 1e6:.0f} MB)"
    )
    print(f"build it with: testctl lab build {name}")


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines")] = False) -> None:
    """The built kernels: version, size, where each lies, and which of them a plan gets."""
    from rich.table import Table

    from testctl.lab.stored import stored
    from testctl.report.terminal import plain_console
    from testctl.testbeds.point_spec import DEFAULT_KERNEL

    found = stored()
    if as_json:
        print(json.dumps([one.to_json() | {"default": one.used and one.name == DEFAULT_KERNEL} for one in found]))
        return
    if not found:
        print("no kernel is built; build one with: testctl lab build")
        return
    table = Table("kernel", "version", "size", "used", "self-test", "where", box=None)
    for one in found:
        used = "by default" if one.name == DEFAULT_KERNEL else f"kernel: {one.name}"
        tested = one.tested.summary if one.tested else f"none: testctl lab test {one.path.name}"
        source = "" if not one.own_tree else ", own tree"
        used = (used if one.used else "no" if one.whole else "not whole: its build was killed") + source
        tested = tested if one.whole else ""
        table.add_row(one.name, one.release, f"{one.size / 1e6:.1f} MB", used, tested, str(one.path))
    plain_console(Console()).print(table)
    print("config of each: the file `config` there; remove one with: testctl lab rm NAME")


@app.command()
def rm(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…", help="a kernel's name, or that of its directory", autocompletion=complete.kernels
        ),
    ] = None,
    unused: Annotated[bool, typer.Option("--unused", help="those that no plan of this checkout gets")] = False,
    source: Annotated[bool, typer.Option("--source", help="all that were built with --source")] = False,
) -> None:
    """Remove built kernels, which `testctl lab build` makes again, and what builds that were killed left."""
    from testctl_agent.spec.errors import PlanError

    from testctl.lab.stored import chosen, remove

    if not words and not unused and not source:
        raise PlanError("lab rm: want the NAME of a kernel, see testctl lab list, or --unused or --source")
    found = chosen(words or [], unused, of_trees=source)
    for kernel in found:
        remove(kernel)
        print(f"removed {kernel.path} ({kernel.size / 1e6:.1f} MB)")
    if not found:
        print("nothing to remove: " + ("every kernel is used" if unused else "no kernel was built with --source"))


@app.command()
def test(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…", help="a kernel's name, or that of its directory", autocompletion=complete.kernels
        ),
    ],
) -> None:
    """The self-test of built kernels: timers, random numbers, the same digest twice; exit code 1 if one fails."""
    from testctl.lab.kernel import Kernel
    from testctl.lab.stored import chosen

    found = chosen(words, unused=False, several=False)
    passed = [_test(Kernel(one.name, one.path.name.rpartition("-")[2], one.path)) for one in found]
    sys.exit(0 if all(passed) else 1)


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
    topology: Annotated[
        str, typer.Argument(help="a file of lab/topologies, such as pair", autocompletion=complete.topologies)
    ] = "pair",
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", autocompletion=complete.kernels)] = "6.12",
    writable: Annotated[
        Path | None,
        typer.Option("--writable", metavar="DIR", exists=True, file_okay=False, help="a directory to write to there"),
    ] = None,
    family: Annotated[
        str,
        typer.Option("--family", metavar="4|6|both", help="whose addresses the names of hosts stand for; 6: over IPv6"),
    ] = "4",
) -> None:
    """Open a shell inside a lab, at a terminal: `ip netns exec sender …`; leaving it ends the lab.

    It sees this machine's files and can't change them, but for those below --writable.
    """
    from testctl_agent.spec.errors import PlanError
    from testctl_agent.switch import testbed_object

    from testctl.core.point import PointSpec
    from testctl.lab import machine
    from testctl.lab.built import kernel_for
    from testctl.plan import load_topology
    from testctl.testbeds.lab_exec import check_family
    from testctl.testbeds.point_spec import DEFAULT_BACKEND

    if not sys.stdin.isatty():
        raise PlanError("lab shell: want a terminal to read from; without one: testctl lab exec -- COMMAND")
    check_family(family)
    found = kernel_for(kernel)
    there = load_topology(topology) if family == "4" else load_topology(topology).with_hosts6()
    point = PointSpec("shell", topology=there, kernel=kernel, backend=DEFAULT_BACKEND)
    sys.exit(machine.shell(point, found.binary, testbed_object.path(), writable, family))
