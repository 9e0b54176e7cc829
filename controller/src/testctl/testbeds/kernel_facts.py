# SPDX-License-Identifier: Apache-2.0
"""What a lab's kernel says of itself when it is tested: timers, random numbers by seed, congestion controls.

Runs in the lab, as the work of its first process; lab/self_test.py judges it.
"""

from __future__ import annotations

import ctypes
import socket
import time
from pathlib import Path
from typing import Any

SEED = Path("/sys/module/testctl_random/parameters/seed")
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
TICK_NS = 1_000_000
"""What the kernel's ticks are multiples of, in whole numbers (HZ is 1000 or less)."""
AFTER_TICK_NS = (100_001, 100_003, 200_255, 200_256, 200_257, 300_499, 500_000, 987_654)
"""When timers are set for, after a tick.  Timers that don't fire to the nanosecond round them differently.

None is in the 256 ns before a tick: reading the clock would last until the tick, which has the kernel read it again.
"""
SOCKETS = 8
CLOCK_REALTIME, TIMER_ABSTIME = 0, 1
PR_SET_TIMERSLACK = 29

libc = ctypes.CDLL(None, use_errno=True)


def facts() -> dict[str, Any]:
    """late_ns, ports and ccs; see the functions below."""
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    return {
        "late_ns": [late_ns(after_tick_ns) for after_tick_ns in AFTER_TICK_NS],
        "ports": [ports(seed) for seed in (7, 7, 8)],
        "ccs": AVAILABLE.read_text(encoding="ascii").split(),
    }


def late_ns(after_tick_ns: int) -> int:
    """How long after the instant that a timer was set for, which is after the next tick, a process reads the clock."""
    at_ns = (time.time_ns() // TICK_NS + 1) * TICK_NS + after_tick_ns
    when = (ctypes.c_long * 2)(*divmod(at_ns, 10**9))
    libc.clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, when, None)
    return time.time_ns() - at_ns


def ports(seed: int) -> list[int]:
    """Ports that the kernel chooses at random after its stream was restarted with a seed."""
    SEED.write_text(str(seed), encoding="ascii")
    opened = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(SOCKETS)]
    for sock in opened:
        sock.bind(("127.0.0.1", 0))
    chosen: list[int] = [sock.getsockname()[1] for sock in opened]
    for sock in opened:
        sock.close()
    return chosen
