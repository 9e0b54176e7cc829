# SPDX-License-Identifier: Apache-2.0
"""How Ansible's programs are started: with the checkout's configuration, and in the inventory's directory.

Ansible takes an ansible.cfg of the directory where it is started as its own, and runs the plugins that this names.  So
it is never started in the user's working directory, which may be one that was unpacked from elsewhere.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from testctl.system import checkout
from testctl_agent.system.toolchain import cache_dir


@dataclass(frozen=True)
class Call:
    """A program of Ansible on an inventory: its first arguments, its environment and where it is started."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path


def program(name: str) -> str | None:
    """Where one of Ansible's programs is: in this Python's directory, else on PATH; None when it is not there."""
    own = Path(sys.executable).with_name(name)
    return str(own) if own.exists() else shutil.which(name)


def playbooks() -> Path:
    """The checkout's directory of playbooks; an installed package has none."""
    return checkout.root() / "playbooks"


def call(name: str, inventory: Path) -> Call | None:
    """How to start a program; None when it is not there.  The inventory is a directory or a file."""
    path = program(name)
    if path is None:
        return None
    place, configuration = inventory.absolute(), playbooks() / "ansible.cfg"
    # The configuration's place for Ansible's files is in the checkout, which a user may only read.
    env = os.environ | {
        "ANSIBLE_HOME": str(cache_dir().absolute() / "ansible"),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    if configuration.is_file():
        env["ANSIBLE_CONFIG"] = str(configuration)
    return Call((path, "-i", str(place)), env, place if place.is_dir() else place.parent)
