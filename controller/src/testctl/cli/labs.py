# SPDX-License-Identifier: Apache-2.0
"""testctl lab: build, get, list, rm, test, shell, exec."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from testctl_agent.spec.errors import PlanError
from testctl_agent.switch import testbed_object

from testctl.cli import complete
from testctl.cli.help import App
from testctl.cli.lab_exec import exec_
from testctl.cli.options import AsJson, Family, Writable
from testctl.cli.source import BuildProgress
from testctl.core.point import PointSpec
from testctl.lab import kernel as kernels
from testctl.lab.built import built, kernel_for
from testctl.lab.debian import SecondApt
from testctl.lab.inputs import Inputs
from testctl.lab.kernel import Kernel
from testctl.lab.kernel_ccs import ccs_of
from testctl.lab.source import find, split_revision
from testctl.lab.stored import chosen, remove, stored
from testctl.plan import load_plan, load_topology
from testctl.system.text import first_of
from testctl.testbeds.point_spec import DEFAULT_BACKEND, DEFAULT_KERNEL, kernels_of, on_kernel

app = App(help="The virtual-time lab: its kernels, and a shell in it.", no_args_is_help=True)
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
    coverage: Annotated[
        bool, typer.Option("--coverage", help="also counters of what TCP executes, as NAME-coverage: for coverage")
    ] = False,
    test: Annotated[bool, typer.Option("--test/--no-test", help="the self-test of a kernel that was built")] = True,
) -> None:
    """Build the lab's kernel from Debian's source package, with lab/cc built in.

    The objects of a tree that is named with --source are kept: the next build compiles what changed.  A variant
    (--trace, --debug, --coverage) is a kernel of its own, for a plan's kernel tuple as any other.
    """
    variants = [name for name, given in (("trace", trace), ("debug", debug), ("coverage", coverage)) if given]
    if variants and plan:
        raise PlanError(f"lab build --for: want a plan whose kernel is the variant; --{variants[0]} is for NAME")
    if len(variants) > 1:
        raise PlanError(
            "lab build: want one of --trace, --debug and --coverage; the variant debug has tracepoints and symbols too"
        )
    variant = variants[0] if variants else ""
    if source and len(names or []) != 1:
        raise PlanError("lab build --source DIR: want one NAME for that kernel, which a plan's kernel tuple then uses")
    served = _served(plan) if plan else {}
    requested = [f"{name}-{variant}" if variant else name for name in names or ([] if plan else ["6.12"])]
    for name in [*served, *(name for name in requested if name not in served)]:
        if name in served and (kernel := served[name]):
            print(f"kernel {name}: {kernel.binary}")
            continue
        origin = find(name, *split_revision(source), variant) if source else find(name)
        kernel = kernels.locate(name, Inputs.of(origin))
        built_now = False
        if not kernel.built:
            with BuildProgress() as progress:
                kernel = kernels.build(origin, progress, jobs)
            changed = kernel.directory / kernels.CHANGED
            if changed.is_file():
                files = first_of(changed.read_text(encoding="utf-8").split(), 8) or "nothing"
                print(f"kernel {name}: changed since the last build of this tree: {files}")
            if lacking := kernels.lacking(kernel):
                print(f"kernel {name}: its tree can't have {', '.join(lacking)}")
            built_now = True
        if source:
            kernels.remember(kernel)
        if built_now and test:
            _test(kernel)
        print(f"kernel {name}: {kernel.binary}")


def _test(kernel: Kernel) -> bool:
    from testctl.execution.kernel_test import self_test

    result = self_test(kernel, lambda what: print(f"kernel {kernel.name}: {what}", file=sys.stderr))
    print(f"kernel {kernel.name}: self-test {result.summary}")
    return result.ok


def _served(file: Path) -> dict[str, Kernel | None]:
    """The kernels that a plan names, and the built ones that serve it."""
    from testctl.metrics import metric_names

    points = load_plan(file, metrics=metric_names()).points
    return {
        name: built(name, ccs_of(on_kernel(points, name)))
        for name in sorted({name for point in points for name in kernels_of(point)})
    }


@app.command()
def get(
    name: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="such as 7.3; none: list what there is")
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", metavar="NAME", help="a suite of Debian to look in; default: trixie-backports and sid"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download a kernel's source of a newer Debian into the cache, or list what can be had; needs no root.

    apt is run with sources, lists and downloads of its own: those of this machine stay as they are.
    """
    apt = SecondApt(suite or ())
    where = f"{apt.archive.uri} {', '.join(apt.suites)}"
    print(f"asked {where} (apt's lists in {apt.home}; this machine's own are not changed)", file=sys.stderr)
    apt.update()
    if name is None:
        available = apt.available()
        if as_json:
            print(json.dumps([asdict(kernel) for kernel in available]))
            return
        for kernel in available:
            print(
                f"{kernel.name}  {kernel.version}  in {kernel.suite}; download it with: testctl lab get {kernel.name}"
            )
        return
    got = apt.fetch(name)
    if as_json:
        print(json.dumps(asdict(got.available) | {"path": str(got.path), "new": got.new}))
        return
    what = f"linux-source-{name} {got.available.version} of {got.available.suite}"
    how = "downloaded" if got.new else "there already:"
    print(f"{how} {what}: {got.path} ({got.path.stat().st_size / 1e6:.0f} MB)")
    print(f"build it with: testctl lab build {name}")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """The built kernels: version, size, where each lies, and which of them a plan gets."""
    from testctl.report.terminal import plain_console

    kernels = stored()
    if as_json:
        print(json.dumps([kernel.to_json() | {"default": kernel.used and kernel.name == DEFAULT_KERNEL}
                          for kernel in kernels]))  # fmt: skip
        return
    if not kernels:
        print("no kernel is built; build one with: testctl lab build")
        return
    table = Table("kernel", "version", "size", "used", "self-test", box=None, pad_edge=False)
    for kernel in kernels:
        used = "by default" if kernel.name == DEFAULT_KERNEL else "yes"
        used = used if kernel.used else "no" if kernel.whole else "its build was killed"
        tested = (kernel.tested.summary if kernel.tested else "none") if kernel.whole else ""
        size = f"{kernel.size / 1e6:.1f} MB"
        table.add_row(kernel.path.name, kernel.release, size, used + ", own tree" * kernel.own_tree, tested)
    plain_console(Console()).print(table)
    print(f"in {kernels[0].path.parent}; testctl lab test NAME, testctl lab rm NAME")


@app.command()
def rm(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]…", help="a kernel's name, or that of its directory", autocompletion=complete.kernels
        ),
    ] = None,
    unused: Annotated[bool, typer.Option("--unused", help="those that no plan of this checkout gets")] = False,
    source: Annotated[bool, typer.Option("--source", help="all that were built with --source")] = False,
) -> None:
    """Remove built kernels, which `testctl lab build` makes again, and what builds that were killed left."""
    if not names and not unused and not source:
        raise PlanError("lab rm: want the NAME of a kernel, see testctl lab list, or --unused or --source")
    kernels = chosen(names or [], unused, of_trees=source)
    for kernel in kernels:
        remove(kernel)
        print(f"removed {kernel.path} ({kernel.size / 1e6:.1f} MB)")
    if not kernels:
        print("nothing to remove: " + ("every kernel is used" if unused else "no kernel was built with --source"))


@app.command()
def test(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME…", help="a kernel's name, or that of its directory", autocompletion=complete.kernels
        ),
    ],
) -> None:
    """The self-test of built kernels: timers, random numbers, the same digest twice; exit code 1 if one fails."""
    kernels = chosen(names, unused=False, several=False)
    passed = [_test(Kernel(kernel.name, kernel.path.name.rpartition("-")[2], kernel.path)) for kernel in kernels]
    sys.exit(0 if all(passed) else 1)


@app.command()
def shell(
    topology: Annotated[
        str, typer.Argument(help="a file of lab/topologies, such as pair", autocompletion=complete.topologies)
    ] = "pair",
    kernel: Annotated[str, typer.Option("--kernel", metavar="NAME", autocompletion=complete.kernels)] = "6.12",
    writable: Writable = None,
    family: Family = "4",
) -> None:
    """Open a shell inside a lab, at a terminal: `ip netns exec sender …`; leaving it ends the lab.

    It sees this machine's files and can't change them, but for those below --writable.
    """
    from testctl.lab import machine
    from testctl.testbeds.lab_exec import check_family

    if not sys.stdin.isatty():
        raise PlanError("lab shell: want a terminal to read from; without one: testctl lab exec -- COMMAND")
    check_family(family)
    binary = kernel_for(kernel).binary
    hosts = load_topology(topology) if family == "4" else load_topology(topology).with_hosts6()
    point = PointSpec("shell", topology=hosts, kernel=kernel, backend=DEFAULT_BACKEND)
    sys.exit(machine.shell(point, binary, testbed_object.path(), writable, family))
