# SPDX-License-Identifier: Apache-2.0
"""Directories that are gone when the process that made them is: what a killed one leaves, the next start removes.

A process that uses such a directory holds a lock on a file in it, which the kernel releases with the process, however
that ends and in whichever container it ran.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from testctl_agent.system import durable

HELD = ".held"
"""The file with the lock."""
ALL = "testctl-"
"""What the names of all directories in the place for temporary files begin with."""
LABS = f"{ALL}lab-"
"""Of a lab: its script, sockets and console.  Not below /dev, because the lab mounts a new /dev."""
_HOME = b"uml_dir="
"""A word of a lab's kernel and of all its processes: the lab's directory."""

_mine: set[Path] = set()
_locks: dict[Path, int] = {}


@contextmanager
def temporary(prefix: str, where: Path | None = None) -> Iterator[Path]:
    """A new directory, gone afterwards; what killed processes left of this kind is removed first.

    where: the directory in which it is made; None: in the place for temporary files, with a prefix of ALL
    """
    if where is not None:
        remove_abandoned(where.glob(f"{prefix}*"))
    else:
        assert prefix.startswith(ALL), prefix
        _sweep_once()
    home = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
    _mine.add(home)
    try:
        hold(home)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        release(home)
        _mine.discard(home)


def cache_entry(entry: Path, make: Callable[[Path], None]) -> None:
    """Have `make` fill a new directory, which becomes an entry of a cache: it appears whole, or not at all."""
    durable.make_directory(entry.parent)
    with temporary(".new-", entry.parent) as home:
        new = home / "entry"
        new.mkdir()
        make(new)
        try:
            durable.publish(new, entry)
        except OSError:
            if not entry.exists():  # not another process that was first
                raise


def hold(directory: Path) -> None:
    """The directory, which is there, is in use from now on, until release() or this process's end."""
    fresh = directory / f"{HELD}.{os.getpid()}"
    lock = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _locks[directory] = lock
    fcntl.flock(lock, fcntl.LOCK_EX)
    fresh.rename(directory / HELD)


def release(directory: Path) -> None:
    """Nobody holds it any more; it may be gone already, and may never have been held."""
    if (lock := _locks.pop(directory, None)) is not None:
        os.close(lock)


def forget() -> None:
    """For a forked process: the directories are its parent's alone, and their locks end with the parent."""
    for directory in list(_locks):
        release(directory)
    _mine.clear()


def remove_mine() -> None:
    """For a process that ends at once: its temporary directories."""
    for home in _mine:
        shutil.rmtree(home, ignore_errors=True)


def remove_temporary() -> None:
    """Remove the directories of ALL whose process is dead, and end what is left of labs."""
    remove_abandoned(Path(tempfile.gettempdir()).glob(f"{ALL}*"))
    _end_labs()


@cache
def _sweep_once() -> None:
    remove_temporary()


def _end_labs() -> None:
    """A process of a lab whose first one is killed while it is made waits to be traced, for ever.

    Its lab is looked up where that process sees it: the lab may have been made in another place for temporary files.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            home = next((os.fsdecode(word.removeprefix(_HOME)) for word in words if word.startswith(_HOME)), "")
            if not Path(home).name.startswith(LABS) or process.stat().st_uid != os.geteuid():
                continue
            seen = process / "root" / home.lstrip("/")
            if _removed(seen) or not seen.exists():
                os.kill(int(process.name), signal.SIGKILL)


def remove_abandoned(directories: Iterable[Path]) -> list[Path]:
    """Remove this user's directories that no process holds any more; returns those.

    A directory that was never held is not removed.  Safe to call concurrently.
    """
    return [directory for directory in directories if _removed(directory)]


def _removed(directory: Path) -> bool:
    with suppress(OSError):
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        lock = os.open(directory / HELD, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
            return True
        finally:
            os.close(lock)
    return False
