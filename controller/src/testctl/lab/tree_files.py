# SPDX-License-Identifier: Apache-2.0
"""The files of a kernel tree, and a copy of them that is brought up to date file by file."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from testctl_agent.system import durable

from testctl.lab import git_tree

Stamp = tuple[int, int]
"""Size and time of the last change, ns."""

STAMPS = "stamps.json"
_MADE = (".o", ".a", ".ko", ".cmd", ".mod", ".d")
_MADE_AT = (".config", "include/config", "include/generated", "arch/um/include/generated", "vmlinux", "linux")
"""What a build leaves in a tree; make refuses a tree with it."""


def listing(tree: Path) -> dict[str, Stamp]:
    """The files of a tree, without git's own and what a build left."""
    names = git_tree.names(tree) if git_tree.is_repository(tree) else _walk(tree)
    stamps = {}
    for name in names:
        try:
            stat = os.lstat(tree / name)
        except FileNotFoundError:
            continue  # git tracks it, but it is deleted
        stamps[name] = (stat.st_size, stat.st_mtime_ns)
    return stamps


def _walk(tree: Path) -> list[str]:
    names = []
    for folder, folders, files in os.walk(tree):
        place = os.path.relpath(folder, tree)
        here = "" if place == "." else f"{place}/"
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links and name != ".git" and not _made(here + name)]
        names += [here + name for name in (*files, *links) if not _made(here + name) and here + name != ".git"]
    return names


def _made(name: str) -> bool:
    return (
        name in _MADE_AT or name.endswith(_MADE) or (name.startswith("arch/") and name.endswith("/include/generated"))
    )


def stamps_of(home: Path) -> Mapping[str, Stamp]:
    """Of the files of the original of a copy below `home`; {} where they are not known."""
    try:
        return {name: (size, time) for name, (size, time) in json.loads((home / STAMPS).read_text("utf-8")).items()}
    except (OSError, ValueError):
        return {}


class Copy:
    """A copy of a tree below `home`, which is kept between builds.

    source    the tree; files get the time at which they changed here, so that make sees what to compile
    pristine  those files of it that are changed before a build, as they are in the original
    """

    def __init__(self, home: Path, apart: Collection[str]) -> None:
        self.source, self.pristine = home / "source", home / "pristine"
        self._home = home
        self._apart = set(apart)

    def update(self, origin: Path, link: bool = False) -> list[str]:
        """Make it what the original is now, and return the names that changed.

        link: whether files may be links to the original's, which are then replaced and never changed in place
        """
        self._move()
        known, now = stamps_of(self._home), listing(origin)
        gone = [name for name in known if name not in now]
        for name in gone:
            self._place(name).unlink(missing_ok=True)
        changed = [name for name, stamp in now.items() if known.get(name) != stamp and self._take(origin, name, link)]
        durable.write(self._home / STAMPS, json.dumps(now).encode())
        return sorted([*changed, *gone])

    def _place(self, name: str) -> Path:
        return (self.pristine if name in self._apart else self.source) / name

    def _take(self, origin: Path, name: str, link: bool) -> bool:
        """Copy a file, unless its content is the same."""
        from_, to = origin / name, self._place(name)
        if from_.is_symlink() and to.is_symlink() and os.readlink(from_) == os.readlink(to):
            return False
        if to.is_file() and not (to.is_symlink() or from_.is_symlink()) and filecmp.cmp(from_, to, shallow=False):
            return False
        to.parent.mkdir(parents=True, exist_ok=True)
        if to.is_dir() and not to.is_symlink():
            shutil.rmtree(to)
        to.unlink(missing_ok=True)
        if from_.is_symlink():
            to.symlink_to(os.readlink(from_))
        elif link:
            os.link(from_, to)
        else:
            shutil.copyfile(from_, to)
            shutil.copymode(from_, to)
        return True

    def _move(self) -> None:
        """Move files that are no longer changed before a build, and those that now are."""
        self.source.mkdir(parents=True, exist_ok=True)
        for path in [path for path in self.pristine.rglob("*") if path.is_file()]:
            name = str(path.relative_to(self.pristine))
            if name not in self._apart:
                shutil.copyfile(path, self.source / name)
                path.unlink()
        for name in self._apart:
            if not (self.pristine / name).is_file() and (self.source / name).is_file():
                (self.pristine / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.source / name, self.pristine / name)
