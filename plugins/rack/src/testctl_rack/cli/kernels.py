# SPDX-License-Identifier: Apache-2.0
"""testctl kernel: install, list, remove."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from testctl.core.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(help="Kernels of your own on the hosts of a rack.", no_args_is_help=True)
Inventory = Annotated[Path, typer.Option("--testbed", metavar="INVENTORY", help="the rack's Ansible inventory")]
Limit = Annotated[str, typer.Option("--limit", metavar="HOSTS", help="only these hosts: alpha,beta")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="by which a plan means it; uname -r ends in -NAME")]


@app.command()
def install(
    name: Name,
    tree: Annotated[Path, typer.Option("--from", metavar="DIR", help="a kernel's source tree; it is not changed")],
    testbed: Inventory,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="in place of the configuration of the kernel that hosts run"),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1)] = os.cpu_count() or 1,
    limit: Limit = "",
    debug_info: Annotated[
        bool, typer.Option("--debug-info", help="with debug information: the build takes far longer, and 10 GB")
    ] = False,
) -> None:
    """Build a source tree as a Debian package, and install it on the hosts of a rack, beside their kernels.

    The configuration is that of the hosts' kernel, reduced to the modules that they have loaded, with what the project
    needs.  What a host boots by itself stays; a plan boots the kernel: [hosts, kernel, ["6.12", "NAME"]].
    """
    from testctl.cli.source import BuildProgress
    from testctl.system.say import say

    from testctl_rack import host_name
    from testctl_rack.host_kernels import Request
    from testctl_rack.host_kernels import install as install_it

    request = Request(host_name.check(name), tree, testbed, limit, config, debug_info)
    with BuildProgress() as progress:
        package, changed = install_it(request, progress, jobs, say)
    print(f"kernel {name}: {package.release}, {package.path}{'' if package.new else ' (as built before)'}")
    if package.lacking:
        print(f"kernel {name}: its tree can't have {', '.join(package.lacking)}")
    _print_changes(changed, "installed")


def _print_changes(changed: Mapping[str, int], what: str) -> None:
    for host, count in sorted(changed.items()):
        changes = f"{what} ({counted(count, 'change')})" if count else "nothing to change"
        print(f"host {host}: {changes}")


@app.command("list")
def list_(
    testbed: Inventory,
    limit: Limit = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON for machines")] = False,
) -> None:
    """Which kernels each host has, which runs, which it boots by itself, and how a plan names each."""
    from dataclasses import asdict

    from rich.table import Table
    from testctl.report.terminal import plain_console

    from testctl_rack.host_kernels import hosts_of, listed

    kernels = listed(testbed, hosts_of(testbed, limit))
    if as_json:
        print(json.dumps([asdict(kernel) for kernel in kernels]))
        return
    table = Table("host", "kernel", "name", "", box=None)
    for kernel in kernels:
        states = [state for state, true in (("runs", kernel.runs), ("default", kernel.default)) if true]
        table.add_row(kernel.host, kernel.release, kernel.name, ", ".join(states))
    plain_console(Console()).print(table)


@app.command()
def remove(name: Name, testbed: Inventory, limit: Limit = "") -> None:
    """Remove a kernel of `testctl kernel install` from hosts; one that runs or is the default is refused."""
    from testctl_rack import host_name
    from testctl_rack.host_kernels import remove as remove_it

    releases, changed = remove_it(host_name.check(name), testbed, limit)
    print(f"kernel {name}: {', '.join(releases)}")
    _print_changes(changed, "removed")
