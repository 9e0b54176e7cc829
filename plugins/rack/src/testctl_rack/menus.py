# SPDX-License-Identifier: Apache-2.0
"""The kernels of hosts' GRUB menus, as root of each host lists them over SSH (boot_once.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError

from testctl_rack import boot_once
from testctl_rack.inventory_file import Machine
from testctl_rack.on_hosts import all_of, on_hosts

SCRIPT = Path(boot_once.__file__)


@dataclass(frozen=True)
class Menu:
    """Releases of one host.

    running  that runs
    was      that the host is to have again after this boot; "" if it was not booted once
    default  that GRUB boots by itself; "" if it is not in the menu
    kernels  of the menu, newest first
    """

    running: str
    was: str
    default: str
    kernels: tuple[str, ...]


def menus(inventory: Path, machines: Mapping[str, Machine]) -> dict[str, Menu]:
    """The menu of each machine.  Raises TestbedError with all that have no menu, or an invalid one."""
    results = on_hosts(inventory, sorted(machines), SCRIPT, ["list"])
    all_of(results, machines)
    return {name: _menu(machines[name], results[name]) for name in machines}


def _menu(machine: Machine, reply: Mapping[str, Any]) -> Menu:
    kernels = reply.get("kernels")
    releases = [reply.get("running"), *(kernels if isinstance(kernels, list) else [None])]
    releases += [release for release in (reply.get("was"), reply.get("default")) if release != ""]
    for release in releases:
        if not isinstance(release, str) or not boot_once.RELEASE.fullmatch(release):
            want = f"want releases of kernels, {boot_once.RELEASE.pattern}"
            raise TestbedError(f"{machine}: its list of kernels: {want}; got {release!r}")
    return Menu(reply["running"], reply["was"], reply["default"], tuple(reply["kernels"]))
