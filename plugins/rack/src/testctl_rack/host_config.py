# SPDX-License-Identifier: Apache-2.0
"""The configuration of a kernel for the hosts of a rack: a running kernel's, and what the project needs.

The devices, queueing disciplines, classifiers and congestion controls are the same as in the lab's kernel, so they are
taken from its fragment, by the comments above them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path

from testctl.system import checkout
from testctl_agent.spec.errors import TestbedError

SECTIONS = ("Hosts, links and switch.", "Queueing disciplines and classifiers.", "Every congestion control of the tree")
"""How the comments begin above those parts of lab/kernel/fragment.config that a host's kernel has too."""

MODULE = re.compile(r"[A-Za-z0-9_]+")

LINE = re.compile(
    r"(#[^\n]*|CONFIG_[A-Za-z0-9_]+="
    r'([ymn]|-?[0-9]+|0[xX][0-9A-Fa-f]+|"[A-Za-z0-9 ._/,:=+@~()\[\]-]*"))?'
)
"""A line of a configuration.  Its texts have no character with which make or a shell begins something else."""


def check(text: str) -> None:
    """Raises TestbedError with the first line of a configuration that is none.

    Kconfig gives the texts of options to make as they are, which expands $(shell …) in them and puts them into its
    commands.  The configuration may be that of a host, whose root is not this machine's.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not LINE.fullmatch(line):
            raise TestbedError(
                f"configuration of a kernel, line {number}: want a comment or CONFIG_NAME=y, m, n, a number or a text "
                f"in quotes of letters, digits, spaces and ._/,:=+@~()[]-; got {line[:120]!r}"
            )


def shared() -> str:
    """The parts of the lab's fragment that hosts have too.  Raises TestbedError where one is not there."""
    file = checkout.lab() / "kernel" / "fragment.config"
    blocks = file.read_text(encoding="utf-8").split("\n\n")
    parts = [block for block in blocks if block.startswith(tuple(f"# {name}" for name in SECTIONS))]
    if len(parts) != len(SECTIONS):
        raise TestbedError(f"{file}: want parts that begin with {'; '.join(SECTIONS)}; got {len(parts)} of them")
    return "\n\n".join(parts) + "\n"


def fragments(*, types: bool) -> tuple[list[Path], list[Path]]:
    """Files of hosts/: those whose every option the kernel must have, and those of which it has what it can.

    types: with debug information, and BTF where pahole is installed
    """
    home = Path(__file__).parent / "hosts"
    return [home / "kernel.config"], [home / "optional.config", home / ("types.config" if types else "plain.config")]


def with_types(debug_info: bool) -> bool:
    """Whether a build has debug information: where it is asked for, or pahole can make BTF of it."""
    return debug_info or shutil.which("pahole") is not None


def lsmod(modules: Collection[str]) -> str:
    """Modules as lsmod prints them, for make localmodconfig."""
    return "Module                  Size  Used by\n" + "".join(f"{name} 16384 0\n" for name in sorted(modules))


def modules_in(text: str) -> set[str]:
    """The modules of what lsmod printed."""
    return {line.split()[0] for line in text.splitlines()[1:] if line.strip()}
