# SPDX-License-Identifier: Apache-2.0
"""Compilers, and the place where all that is built is kept."""

from __future__ import annotations

import functools
import os
import platform
import shutil
from pathlib import Path

from testctl_agent.spec.errors import Unavailable
from testctl_agent.system.subprocesses import run

BPF_FLAGS = ("-target", "bpf", "-mcpu=v3", "-O2", "-g", f"-I/usr/include/{platform.machine()}-linux-gnu")
"""For clang; the folder is that of asm/types.h, which -target bpf does not look in."""

KERNEL_TYPES = "sys/kernel/btf/vmlinux"
"""Where a running kernel shows its BTF, below the root."""


def cache_dir() -> Path:
    """$TESTCTL_CACHE, or testctl in the user's cache directory."""
    named = os.environ.get("TESTCTL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "testctl"


@functools.cache
def compiler(name: str, what: str) -> tuple[str, str]:
    """A compiler's path and version.  Raises Unavailable when it, or what it needs, is not installed.

    what: that which can't be compiled without it, for the error
    """
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed: {what} can't be compiled (Debian: apt install {name})")
    if not Path("/usr/include/linux/bpf.h").exists():
        raise Unavailable(
            f"/usr/include/linux/bpf.h is missing: {what} can't be compiled (Debian: apt install linux-libc-dev)"
        )
    return found, run([found, "--version"]).splitlines()[0]


def kernel_types(root: Path = Path("/")) -> bytes:
    """The running kernel's BTF; empty where it was built without."""
    try:
        return (root / KERNEL_TYPES).read_bytes()
    except OSError:
        return b""
