# SPDX-License-Identifier: Apache-2.0
"""A file system of its own whose power can be cut: ext4 on a loop device, EXT4_IOC_SHUTDOWN.  Needs root."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NOLOGFLUSH = 2  # nothing more reaches the disk: neither data nor the file system's journal
STEPS = ("fsync", "rename", "replace", "mkdir", "link", "symlink", "unlink")
"""Functions of os before which power may be cut."""
CUT, ENDED = 7, 0


def command(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


class Disk:
    """An image with ext4, mounted or not."""

    def __init__(self, image: Path, place: Path) -> None:
        self.image, self.place = image, place

    def mount(self) -> None:
        command("mount", "-o", "loop", str(self.image), str(self.place))

    def unmount(self) -> None:
        command("umount", str(self.place))

    def cut(self) -> None:
        """What is not on the disk now never will be; everything later fails."""
        file = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(file, EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
        finally:
            os.close(file)

    def again(self) -> None:
        """Power is back: whatever was only in memory is gone, and the file system's journal is replayed."""
        self.unmount()
        self.mount()


@contextmanager
def disk(where: Path, size: int = 512 << 20) -> Iterator[Disk]:
    """A fresh one, mounted.  Raises OSError where that can't be had."""
    image, place = where / "image", where / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(size)
    command("mkfs.ext4", "-q", str(image))
    made = Disk(image, place)
    made.mount()
    try:
        yield made
    finally:
        made.unmount()
        image.unlink()


def in_child(what: Callable[[], object], log: Path, on_step: Callable[[int, str], None]) -> int:
    """Run something in a process of its own; `on_step` comes before each of STEPS.  Its exit code; 1 for an exception.

    A process that ends by os._exit writes nothing more, as one whose machine is off.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(120)
            _watch(on_step)
            what()
            code = ENDED
        except BaseException:  # noqa: BLE001  the parent reads it
            log.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _watch(on_step: Callable[[int, str], None]) -> None:
    count = 0
    for name in STEPS:
        real = getattr(os, name)

        def step(*words: object, _real: Callable[..., object] = real, _name: str = name, **more: object) -> object:
            nonlocal count
            count += 1
            on_step(count, _name)
            return _real(*words, **more)

        setattr(os, name, step)
