# SPDX-License-Identifier: Apache-2.0
"""What the lab's kernel says, and its random numbers."""

from __future__ import annotations

import ctypes
from pathlib import Path

from early import libc

SEED = Path("/sys/module/testctl_random/parameters/seed")
USER_SEED = SEED.with_name("user")
JITTER_SEED = Path("/sys/module/testctl_interrupts/parameters/restart")
WAITS = Path("/sys/module/testctl_waits/parameters/on")
TAINTED = Path("/proc/sys/kernel/tainted")
_LOG_BYTES = 1 << 20
_READ_ALL, _READ_CLEAR = 3, 4


def seed(number: int) -> None:
    """Begin the random numbers of the kernel, those of programs, and those of the hosts' jitter."""
    for file in (SEED, USER_SEED, JITTER_SEED):
        file.write_text(str(number), encoding="ascii")


def waits_pass_time() -> None:
    """From now on programs that wait by times(2) or sched_yield(2) let time pass (lab/kernel/lab_waits.c)."""
    WAITS.write_text("Y", encoding="ascii")


def kernel_log() -> bytes:
    """The kernel's messages since the boot, or since the last new_messages()."""
    return _syslog(_READ_ALL)


def new_messages() -> bytes:
    """The kernel's messages since the last call."""
    return _syslog(_READ_CLEAR)


def _syslog(action: int) -> bytes:
    """syslog(2)."""
    text = ctypes.create_string_buffer(_LOG_BYTES)
    length = libc.klogctl(action, text, _LOG_BYTES)
    return text.raw[: max(length, 0)]
