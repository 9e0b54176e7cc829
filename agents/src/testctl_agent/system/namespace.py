# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, and file systems mounted in them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NAMED = Path("/run/netns")
"""Where `ip netns` keeps the names of namespaces."""

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
CLONE_NEWPID = 0x20000000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError when a call of the C library failed."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(kind: str, where: str) -> None:
    """A file system without a device, at a directory that is made for it."""
    Path(where).mkdir(parents=True, exist_ok=True)
    check(_libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None), f"mount {kind} at {where}")


def unshare(what: int) -> None:
    check(_libc.unshare(what), "unshare")


def private_mounts() -> None:
    """What this process mounts from now on nobody else sees."""
    unshare(CLONE_NEWNS)
    check(_libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None), "private mounts")


def join(namespace: Path) -> None:
    """Move this thread into a network namespace."""
    with namespace.open("rb") as file:
        check(_libc.setns(file.fileno(), CLONE_NEWNET), f"setns {namespace}")


@dataclass(frozen=True)
class Place:
    """A network namespace with the mounts of a process that was in it, as files that stay open."""

    network: int
    mounts: int

    @classmethod
    def here(cls) -> Place:
        return cls(*(os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "mnt")))

    def go(self) -> None:
        """Move this process there, which has no other threads; its directory is then /."""
        check(_libc.setns(self.mounts, CLONE_NEWNS), "setns of mounts (which a process with several threads can't)")
        check(_libc.setns(self.network, CLONE_NEWNET), "setns")


@contextmanager
def away(home: Place, there: Place) -> Iterator[None]:
    """This process is there; afterwards it is at home."""
    try:
        there.go()
        yield
    finally:
        home.go()


def enter(namespace: str) -> None:
    """Move this process into a network namespace by its name, with the /sys of that namespace."""
    join(NAMED / namespace)
    private_mounts()
    mount("sysfs", "/sys")
