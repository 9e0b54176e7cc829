# SPDX-License-Identifier: Apache-2.0
"""What the lab's first process needs before it imports anything else."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)

_MCL_FUTURE = 2


def fill_memory() -> None:
    """Let the kernel fill what this process gets of memory at once, not page by page when it is touched (mlockall(2)).

    For each such page a lab stops its process, which takes longer than all else that an import does.
    """
    libc.mlockall(_MCL_FUTURE)


def fill_no_more() -> None:
    libc.munlockall()


def mount_writable(where: str) -> None:
    """Mount a directory again where it is: of the machine's files only what is below such a one can be changed."""
    if libc.mount(b"none", where.encode(), b"hostfs", 0, where.encode()) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {where}: {os.strerror(code)}")


def step_ended(name: str) -> None:
    """Leave the time of a step's end, by the machine's clock, for who measures the start."""
    if steps := os.environ.get("TESTCTL_STEPS"):
        os.close(os.open(f"{steps}/{name}", os.O_WRONLY | os.O_CREAT, 0o644))
