# SPDX-License-Identifier: Apache-2.0
"""Where a kernel is built: a place that is removed, or, for a tree of the user's, one that keeps its objects."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testctl.lab import git_tree
from testctl.lab.edits import load_edits
from testctl.lab.source import KernelSource
from testctl.lab.tree_files import Copy, stamps_of
from testctl.system import checkout
from testctl.system.subprocesses import held_by_children

EDITS = "edits.yaml"
BUILDING = ".building"
UNFINISHED = "unfinished"
"""A file in a place that keeps its objects: there as long as something is built in it."""


@dataclass(frozen=True)
class Workplace:
    """The copy of a tree, its objects, and what its build printed; a variant has objects of its own."""

    home: Path
    variant: str = ""

    @property
    def source(self) -> Path:
        return self.home / "source"

    @property
    def objects(self) -> Path:
        return self.home / f"objects{self._suffix}"

    @property
    def log(self) -> Path:
        return self.home / "build.log"

    @property
    def edits(self) -> Path:
        """A line about each edit."""
        return self.home / "edits.txt"

    @property
    def configured(self) -> Path:
        """A file that is there if the objects are configured; it says for what."""
        return self.home / f"configured{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f"-{self.variant}" if self.variant else ""

    @property
    def pristine(self) -> Path | None:
        """Where the files that edits change are as they were; None: in the source, which is new."""
        kept = self.home / "pristine"
        return kept if kept.is_dir() else None

    def bring(self, source: KernelSource) -> list[str] | None:
        """Put the source's files here; the names of those that changed since then, None if it is the first time."""
        if not source.is_tree:
            source.unpack(self.source)
            return None
        first = not self.configured.is_file()
        origin = source.origin
        if source.revision:
            origin = self.home / "checkout"
            git_tree.write(source.origin, source.revision, origin, self.home / "index")
        changed_here = {edit.file for edit in load_edits(checkout.lab() / "kernel" / EDITS)}
        copy = Copy(self.home, changed_here | {name for name, _ in source.replaced})
        changed = copy.update(origin, link=bool(source.revision))
        # Another text of these files may be another configuration.
        prefixes = ("scripts/", "arch/um/configs/")
        if any(name.startswith(prefixes) or Path(name).name.startswith(("Kconfig", "Makefile")) for name in changed):
            for file in self.home.glob("configured*"):
                file.unlink()
        return None if first else changed

    def compiled(self, changed: Iterable[str]) -> list[str]:
        """The source's files that are compiled, or that make reads for it; the one changed last is first."""
        stamps = stamps_of(self.home)
        return sorted(filter(self._is_compiled, changed), key=lambda name: (-stamps.get(name, (0, 0))[1], name))

    def _is_compiled(self, name: str) -> bool:
        path = Path(name)
        if path.suffix in (".c", ".S"):
            return (self.objects / path).with_suffix(".o").is_file()
        if path.suffix != ".h" and not path.name.startswith(("Kconfig", "Makefile", "Kbuild")):
            return False
        return path.parts[0] == "include" or self.objects.joinpath(*path.parts[:2][: len(path.parts) - 1]).is_dir()


@contextmanager
def of(source: KernelSource, kernel: Path) -> Iterator[Workplace]:
    """The place to build a kernel in, which will lie in the directory `kernel`."""
    if source.is_tree:
        home = kept(source.origin)
        with lock(home.with_name(f"{home.name}.lock")):
            home.mkdir(parents=True, exist_ok=True)
            with finishing(home):
                yield Workplace(home, source.variant)
        return
    home = kernel.with_name(f"{kernel.name}{BUILDING}")
    _remove_unfinished(home)
    try:
        home.mkdir(parents=True)
        yield Workplace(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _remove_unfinished(own: Path) -> None:
    """Remove the place `own`, and those next to it whose builds were killed."""
    shutil.rmtree(own, ignore_errors=True)
    for home in own.parent.glob(f"*{BUILDING}"):
        with suppress(OSError), home.with_name(f"{home.name.removesuffix(BUILDING)}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)


def trees() -> Path:
    """Where the copies of users' trees and their objects lie."""
    return checkout.cache_dir() / "trees"


def kept(origin: Path) -> Path:
    """The place of a user's tree and all its revisions."""
    return trees() / f"{origin.name}-{hashlib.sha256(str(origin).encode()).hexdigest()[:12]}"


@contextmanager
def lock(path: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Lock: one build of a kernel at a time.  `waits` is called where another process has it.

    Processes that are started meanwhile have it too: where this process is killed, until the last compiler has ended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(file, fcntl.LOCK_EX)
        with held_by_children(file.fileno()):
            yield


def held(path: Path) -> bool:
    """Whether a process has this lock."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def finishing(home: Path) -> Iterator[None]:
    """A build below `home`, with the lock: objects of one that was killed are removed first.

    A compiler that is killed leaves a part of an object, which make takes for a whole one.
    """
    mark = home / UNFINISHED
    if mark.exists():
        for path in [*home.glob("objects*"), *home.glob("configured*")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()
