# SPDX-License-Identifier: Apache-2.0
"""The kernels that lie in the cache: what each is, which of them a plan gets, and removing one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError
from testctl_agent.system import durable

from testctl.lab import kernel as kernels
from testctl.lab.built import built, names
from testctl.lab.kernel import directory
from testctl.lab.self_test import SelfTest, kept
from testctl.lab.source import split_variant
from testctl.lab.tree_kernel import SOURCE
from testctl.lab.workplace import BUILDING, held, lock

CONFIG = "config"
REMOVED = ".removed"
_WHOLE = re.compile(r".+-[0-9a-f]{16}")
"""A directory's name; while it is written or removed, one of _PARTS is behind it."""
_PARTS = (BUILDING, ".new", REMOVED)


@dataclass(frozen=True)
class Stored:
    """A built kernel in the cache, or what a command that was killed left of one.

    release   of the kernel, such as 6.12.117; "" if it is not known
    size      bytes of all its files
    own_tree  whether it is the one that was built with --source under its name
    of_tree   whether it was built with --source
    used      whether a plan that names it, and none of lab/cc, gets this one
    tested    its self-test, if it was made
    whole     False: a build or a removal of it was killed; its directory's name is its name
    """

    name: str
    path: Path
    release: str
    size: int
    own_tree: bool
    used: bool
    tested: SelfTest | None = None
    of_tree: bool = False
    whole: bool = True

    @property
    def config(self) -> Path:
        return self.path / CONFIG

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "release": self.release, "bytes": self.size, "own_tree": self.own_tree,
                "used": self.used, "whole": self.whole, "directory": str(self.path), "config": str(self.config),
                "self_test": asdict(self.tested) if self.tested else None}  # fmt: skip


def stored() -> list[Stored]:
    """Every built kernel, by name, the used one of a name first; and what commands that were killed left."""
    used = {kernel.directory for name in names() if (kernel := built(name))}
    places = [binary.parent for binary in directory().glob("*-*/linux") if _WHOLE.fullmatch(binary.parent.name)]
    whole = [_stored(path, used) for path in places]
    left = []
    parts = [path for part in _PARTS for path in directory().glob(f"*{part}") if not held(_lock_of(path))]
    for path in sorted(parts):
        size = sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
        left.append(Stored(path.name, path, "", size, own_tree=False, used=False, whole=False))
    return sorted(whole, key=lambda kernel: (kernel.name, not kernel.used, kernel.path)) + left


def _lock_of(path: Path) -> Path:
    """The lock under which a kernel's directory is written and removed."""
    name = path.name if _WHOLE.fullmatch(path.name) else path.name.rpartition(".")[0]
    return path.with_name(f"{name}.lock")


def _stored(path: Path, used: Iterable[Path]) -> Stored:
    name, _, key = path.name.rpartition("-")
    return Stored(
        name=name,
        path=path,
        release=kernels.Kernel(name, key, path).release,
        size=sum(file.stat().st_size for file in path.iterdir() if file.is_file()),
        own_tree=_registered(name) == path.name,
        of_tree=bool(_registered(name)) or split_variant(name)[0] == SOURCE,
        used=path in used,
        tested=kept(path),
    )


def _registered(name: str) -> str:
    """The directory that a name of --source stands for; "" if there is none."""
    try:
        return kernels.name_file(name).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def chosen(named: Sequence[str], unused: bool, several: bool = True, of_trees: bool = False) -> list[Stored]:
    """The kernels of these names, and the unused ones, or those that were built with --source.

    A name belongs to one kernel alone, or it is a directory's.  Raises PlanError for a name that means no
    kernel or several.

    several: whether a name that several kernels have means no kernel; else it means the one that is used
    """
    kernels = [kernel for kernel in stored() if kernel.whole or several]
    selected = [kernel for kernel in kernels if (unused and not kernel.used) or (of_trees and kernel.of_tree)]
    for name in named:
        matches = [kernel for kernel in kernels if name in (kernel.name, kernel.path.name)]
        if not several:
            matches = [kernel for kernel in matches if kernel.used or kernel.path.name == name][:1]
        if len(matches) != 1:
            known = ", ".join(kernel.path.name for kernel in matches or kernels) or "none"
            raise PlanError(f"kernel {name!r}: want one of the built kernels; there are {known} (in {directory()})")
        selected += [kernel for kernel in matches if kernel not in selected]
    return selected


def remove(kernel: Stored) -> None:
    """Remove a kernel from the cache, and its name if it was built with --source.

    Not while it is built: that is waited for.  A lab that runs keeps its kernel until it ends.
    """
    with lock(_lock_of(kernel.path)):
        if not kernel.whole:
            shutil.rmtree(kernel.path, ignore_errors=True)
            return
        if kernel.own_tree:
            kernels.name_file(kernel.name).unlink(missing_ok=True)
        gone = kernel.path.with_name(f"{kernel.path.name}{REMOVED}")
        shutil.rmtree(gone, ignore_errors=True)
        durable.rename(kernel.path, gone)
        shutil.rmtree(gone)
