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
    default  that GRUB boots by itself; "" if that is none of the menu
    kernels  of the menu, newest first
    """

    running: str
    was: str
    default: str
    kernels: tuple[str, ...]


def menus(inventory: Path, machines: Mapping[str, Machine]) -> dict[str, Menu]:
    """The menu of each machine.  Raises TestbedError with all that have none, or say what is none."""
    results = on_hosts(inventory, sorted(machines), SCRIPT, ["list"])
    all_of(results, machines)
    return {name: _menu(machines[name], results[name]) for name in machines}


def _menu(machine: Machine, said: Mapping[str, Any]) -> Menu:
    kernels = said.get("kernels")
    found = [said.get("running"), *(kernels if isinstance(kernels, list) else [None])]
    found += [one for one in (said.get("was"), said.get("default")) if one != ""]
    for one in found:
        if not isinstance(one, str) or not boot_once.RELEASE.fullmatch(one):
            want = f"want releases of kernels, {boot_once.RELEASE.pattern}"
            raise TestbedError(f"{machine}: its list of kernels: {want}; got {one!r}")
    return Menu(said["running"], said["was"], said["default"], tuple(said["kernels"]))
