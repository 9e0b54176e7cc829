# SPDX-License-Identifier: Apache-2.0
"""Compilers, and the place where all that is built is kept."""

from __future__ import annotations

import functools
import os
import platform
import shutil
from contextlib import suppress
from pathlib import Path

from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.system.subprocesses import run

BPF_FLAGS = ("-target", "bpf", "-mcpu=v3", "-O2", "-g", f"-I/usr/include/{platform.machine()}-linux-gnu")
"""For clang; the folder has asm/types.h, and -target bpf does not search it."""

KERNEL_TYPES = "sys/kernel/btf/vmlinux"
"""Where a running kernel shows its BTF, below the root."""


def cache_dir() -> Path:
    """$TESTCTL_CACHE, or testctl in the user's cache directory.

    Raises TestbedError where others may write to it, as programs, kernels and libraries in it are run; and for a user
    without a home.
    """
    named = os.environ.get("TESTCTL_CACHE")
    try:
        cache = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "testctl"
    except RuntimeError as error:
        raise TestbedError(f"TESTCTL_CACHE: want a directory for what is built, or HOME; got none: {error}") from error
    _check_own(cache)
    return cache


@functools.cache
def _check_own(cache: Path) -> None:
    """That only its user and root may write to a cache; one that is not there is made so, where that may be."""
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(0o755 if os.geteuid() == 0 else 0o700)  # whatever the umask lets others write below it
    if not cache.is_dir():
        return
    own = (0, os.geteuid())
    below = [entry.path for entry in os.scandir(cache) if entry.is_dir()] if cache.stat().st_mode & 0o011 else []
    for place in (str(cache), *below):
        status = os.stat(place)
        if status.st_mode & 0o022 or status.st_uid not in own:
            raise TestbedError(
                f"{place}: want a cache that only its user may write to: what is in it is run; got mode "
                f"{status.st_mode & 0o7777:o} of user {status.st_uid} (if nobody else has written there: "
                f"chmod 700 {cache}; another place: set TESTCTL_CACHE)"
            )


@functools.cache
def compiler(name: str, what: str) -> tuple[str, str]:
    """A compiler's path and version.  Raises Unavailable when it, or what it needs, is not installed.

    what: the code to compile, for the error
    """
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"{name} is not installed: {what} can't be compiled (Debian: apt install {name})")
    if not Path("/usr/include/linux/bpf.h").exists():
        raise Unavailable(
            f"/usr/include/linux/bpf.h is missing: {what} can't be compiled (Debian: apt install linux-libc-dev)"
        )
    return path, run([path, "--version"]).splitlines()[0]


def kernel_types(root: Path = Path("/")) -> bytes:
    """The running kernel's BTF; empty where it was built without."""
    try:
        return (root / KERNEL_TYPES).read_bytes()
    except OSError:
        return b""
