# SPDX-License-Identifier: Apache-2.0
"""Kernels of the user's own on the hosts of a rack: installed and removed by playbooks, listed, never booted."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl.lab.make import Progress
from testctl_agent.spec.errors import PlanError, TestbedError

from testctl_rack import host_config, host_kernel, host_modules, host_name
from testctl_rack.host_kernel import Package, Wanted
from testctl_rack.inventory_file import Machine, read_rack
from testctl_rack.menus import menus
from testctl_rack.on_hosts import all_of, on_hosts
from testctl_rack.playbooks import play

FACTS = Path(host_modules.__file__)
INSTALL, REMOVE = "kernel_install.yml", "kernel_remove.yml"
CONFIG_BYTES = 4 << 20
"""A configuration has 0.3 MB."""


@dataclass(frozen=True)
class Installed:
    """A kernel in GRUB's menu of a host.

    name     by which a plan means it, if testctl installed it
    runs     whether it does now
    default  whether the host boots it by itself
    """

    host: str
    release: str
    name: str
    runs: bool
    default: bool


def hosts_of(inventory: Path, limit: str = "") -> dict[str, Machine]:
    """The hosts of an inventory, or of a list with commas.  Raises PlanError."""
    hosts = {machine.name: machine for machine in read_rack(inventory).of_kind("host")}
    names = [name.strip() for name in limit.split(",") if name.strip()] or list(hosts)
    if unknown := [name for name in names if name not in hosts]:
        raise PlanError(f"--limit {limit}: want hosts of {inventory}: {', '.join(hosts)}; got {', '.join(unknown)}")
    if not names:
        raise PlanError(f"--testbed {inventory}: want hosts in the group testctl_hosts; got none")
    return {name: hosts[name] for name in names}


def listed(inventory: Path, hosts: Mapping[str, Machine]) -> list[Installed]:
    """The kernels of hosts, each host's in the order of its menu.  Raises TestbedError for a host that has no menu."""
    return [
        Installed(host, release, host_name.name_of(release), release == menu.running, release == menu.default)
        for host, menu in sorted(menus(inventory, hosts).items())
        for release in menu.kernels
    ]


@dataclass(frozen=True)
class Request:
    """The arguments of `testctl kernel install`; config: a file in place of the hosts' configuration."""

    name: str
    tree: Path
    inventory: Path
    limit: str = ""
    config: Path | None = None
    debug_info: bool = False


def install(
    request: Request, progress: Progress, jobs: int, say: Callable[[str], None]
) -> tuple[Package, dict[str, int]]:
    """Build the package and install it; how many tasks have changed something on each host.

    Raises PlanError for a wrong request before anything is built, TestbedError.
    """
    version = host_kernel.version_of(request.tree)
    if request.config is not None and not request.config.is_file():
        raise PlanError(f"--config {request.config}: want the configuration of a kernel; there is no such file")
    hosts = hosts_of(request.inventory, request.limit)
    host_kernel.check_programs()
    there = listed(request.inventory, hosts)
    _refuse_others(there, request, version)
    if request.config is None:
        config, modules = _of_hosts(request, hosts, say)
    else:
        config, modules = request.config.read_text(encoding="utf-8", errors="replace"), None
    wanted = Wanted(request.name, request.tree, version, config, modules, request.debug_info)
    package = host_kernel.build(wanted, progress, jobs)
    _refuse_others(there, request, package.release)
    variables = {"kernel_package": str(package.path.resolve()), "kernel_release": package.release}
    return package, play(request.inventory, INSTALL, sorted(hosts), variables)


def _refuse_others(there: Sequence[Installed], request: Request, release: str) -> None:
    """A name means one kernel of a host.

    release: of the kernel, or what it begins with
    """
    named = [kernel for kernel in there if host_name.means(request.name, kernel.release)]
    others = [kernel for kernel in named if not re.fullmatch(rf"{re.escape(release)}([^0-9].*)?", kernel.release)]
    if others:
        raise PlanError("\n".join(
            f"host {other.host}: want no other kernel of the name {request.name} beside {release}; got {other.release} "
            f"(testctl kernel remove {request.name} --testbed {request.inventory})" for other in others
        ))  # fmt: skip


def _of_hosts(request: Request, hosts: Mapping[str, Machine], say: Callable[[str], None]) -> tuple[str, frozenset[str]]:
    """The configuration, and the modules that any host has loaded, now or when the name was built before.

    The configuration stays that of the first build of a tree and a name: another one would compile everything again.
    """
    results = on_hosts(request.inventory, sorted(hosts), FACTS, [])
    all_of(results, hosts)
    kept, modules = host_kernel.known(request.tree, request.name)
    for host, result in sorted(results.items()):
        loaded = {str(name) for name in result["modules"]}
        if wrong := [name for name in loaded if not host_config.MODULE.fullmatch(name)]:
            raise TestbedError(f"{hosts[host]}: want names of modules; got {wrong[0]!r}")
        modules |= loaded
    newest = max(sorted(results), key=lambda host: _numbers(str(results[host]["release"])))
    release = results[newest]["release"]
    whose = "of the last build" if kept else f"of Linux {release} of host {newest}"
    say(f"configuration {whose}, reduced to {len(modules)} modules of {', '.join(sorted(hosts))}")
    return kept or _unpacked(results[newest], hosts[newest]), modules


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.partition("-")[0].partition("+")[0].split(".") if part.isdecimal()]


def _unpacked(result: Mapping[str, Any], host: Machine) -> str:
    """A host's configuration.  Raises TestbedError for anything else."""
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(base64.b64decode(str(result["config"]), validate=True), CONFIG_BYTES).decode()
    except (ValueError, zlib.error) as error:
        raise TestbedError(f"{host}: want the configuration of its kernel; got {error}") from error
    if "CONFIG_" not in text or not inflate.eof:
        raise TestbedError(f"{host}: want the configuration of its kernel; got {text[:60]!r}")
    return text


def remove(name: str, inventory: Path, limit: str = "") -> tuple[list[str], dict[str, int]]:
    """Remove the kernels of a name; their releases, and how many tasks have changed something on each host.

    Raises PlanError where no host has one, and for one that runs or is the default: then none is removed.
    """
    hosts = hosts_of(inventory, limit)
    every = listed(inventory, hosts)
    kernels = [kernel for kernel in every if kernel.name == name]
    if not kernels:
        have = ", ".join(sorted({kernel.name for kernel in every if kernel.name})) or "none"
        raise PlanError(f"kernel {name!r}: want one that testctl has installed on {', '.join(hosts)}; got {have}")
    if used := [kernel for kernel in kernels if kernel.runs or kernel.default]:
        raise PlanError("\n".join(
            f"host {kernel.host}: want {kernel.release} neither to run nor to be the default before it is removed; got "
            f"it {'running (a reboot boots the default)' if kernel.runs else 'as the default (grub-set-default)'}"
            for kernel in used
        ))  # fmt: skip
    releases = sorted({kernel.release for kernel in kernels})
    return releases, play(inventory, REMOVE, sorted({kernel.host for kernel in kernels}), {"kernel_releases": releases})
