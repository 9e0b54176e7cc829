# SPDX-License-Identifier: Apache-2.0
"""Files and directories that outlast a power cut: the one place that syncs and renames.

A rename counts at once, and may reach the disk before the content of what was renamed.  So everything that a rename
makes count is synced before it, and the directory that holds the new name after it.  All functions raise OSError.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """Make a file's content, or a directory's names, outlast a power cut."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some file systems can't sync a directory and do it by themselves.
        if error.errno != errno.EINVAL or not stat.S_ISDIR(os.fstat(opened).st_mode):
            raise
    finally:
        os.close(opened)


def sync_tree(directory: Path) -> None:
    """Sync all files and directories below one, and itself; symbolic links are not followed."""
    for folder, _, names in os.walk(directory, topdown=False, onerror=_raise):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                sync(path)
        sync(Path(folder))


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Make a directory and, with the usual mode, the parents that are missing; one that is there stays."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        with suppress(FileExistsError):  # another process was first
            place.mkdir(mode if place == path else 0o777)
        sync(place.parent)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def write(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file under a temporary name and rename it over `path`; on failure there is no trace of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(opened, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def publish(temporary: Path, final: Path) -> None:
    """Give a finished file or directory its name: what lies there counts from now on, and is whole.

    Replaces a file, not a directory that has something in it.
    """
    if temporary.is_dir():
        sync_tree(temporary)
    else:
        sync(temporary)
    os.rename(temporary, final)
    sync(final.parent)


def rename(old: Path, new: Path) -> None:
    """Rename what was written by `write` and `publish` alone; if that can't be made to last, the old name is back."""
    os.rename(old, new)
    try:
        sync(new.parent)
    except OSError:
        with suppress(OSError):
            os.rename(new, old)
        raise


def link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, replacing an older one at once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(target)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file for good."""
    path.unlink()
    sync(path.parent)


def _raise(error: OSError) -> None:
    raise error
