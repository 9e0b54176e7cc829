# SPDX-License-Identifier: Apache-2.0
"""Which files of a tree a kernel was built from: a commit that changes none of them is the same kernel."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from testctl_agent.system import durable

from testctl.lab import workplace
from testctl.lab.kernel import Kernel
from testctl.lab.source import KernelSource

FILE = "sources.txt"
"""File in a kernel's directory: the C files, headers and assembly that its build read, one name a line."""

_PATH = re.compile(r"(?<![\w.$(])[\w./+-]*/source/([\w./+-]+\.[chS])\b")
_CODE = (".c", ".h", ".S")
_ALWAYS = ("scripts/", "tools/build/", "tools/scripts/", "usr/")
_NEVER = ("Documentation/", "LICENSES/", "rust/", "samples/", "tools/", "virt/")
_ARCHITECTURES = ("um", "x86")


def keep(kernel: Kernel, source: KernelSource) -> None:
    """Write down what a kernel was built from, just after its build."""
    work = workplace.Workplace(workplace.kept(source.origin))
    names: set[str] = set()
    for path in work.objects.rglob(".*.cmd"):
        text = path.read_text(encoding="utf-8", errors="replace")
        names |= {str(PurePosixPath(name)) for name in _PATH.findall(text)}
    if names:
        durable.write(kernel.directory / FILE, "".join(f"{name}\n" for name in sorted(names)).encode())


def read(kernel: Kernel) -> frozenset[str] | None:
    """The files that a kernel was built from; None when that is not known."""
    file = kernel.directory / FILE
    return frozenset(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else None


def relevant(changed: Iterable[str], sources: Collection[str]) -> list[str]:
    """The files among those changed that may make another kernel of the lab.

    Code counts if the build read it; everything else (Makefile, Kconfig, tables, scripts) counts unless no build of
    this architecture can read it.
    """
    return [name for name in changed if _counts(name, sources)]


def _counts(name: str, sources: Collection[str]) -> bool:
    parts = name.split("/")
    if name in sources or name.startswith(_ALWAYS):
        return True
    if name.startswith(_NEVER) or (parts[0] == "arch" and len(parts) > 2 and parts[1] not in _ARCHITECTURES):
        return False
    return not name.endswith(_CODE) and not (
        name.endswith((".rst", ".txt", ".dts", ".dtsi", ".rs", ".md")) or parts[-1] in _NO_INPUT
    )


_NO_INPUT = frozenset({"MAINTAINERS", "CREDITS", "COPYING", "README", ".mailmap", ".gitignore", ".clang-format"})
