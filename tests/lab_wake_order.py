# SPDX-License-Identifier: Apache-2.0
"""In the lab: four processes with different histories wake a nanosecond apart; in which order do they run?

Prints two lines of JSON, the order in each of four trials: with the scheduler's state of the past, and after
its reset.
"""

import ctypes
import json
import os
import random
import time
from pathlib import Path

FORGET = Path("/sys/module/testctl_sched/parameters/forget")
PROCESSES = 4
TRIALS = 4
CLOCK_REALTIME, TIMER_ABSTIME = 0, 1
MS = 10**6

libc = ctypes.CDLL(None)


def sleep_until(at_ns: int) -> None:
    when = (ctypes.c_long * 2)(*divmod(at_ns, 10**9))
    assert libc.clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, when, None) == 0


def live(past: random.Random) -> None:
    """Compute and sleep, in turns of up to 1 ms."""
    for _ in range(4):
        end_ns = time.time_ns() + past.randrange(MS)
        while time.time_ns() < end_ns:
            pass
        time.sleep(past.random() * 5e-4)


def trial(number: int, forget: bool) -> str:
    start_ns = time.time_ns() + 20 * MS
    end_ns = start_ns + 50 * MS
    woken, says = os.pipe()
    for process in range(PROCESSES):
        if os.fork() == 0:
            live(random.Random(number * PROCESSES + process))
            sleep_until(end_ns + process)
            os.write(says, str(process).encode())
            os._exit(0)
    sleep_until(end_ns - 20 * MS)
    if forget:
        FORGET.write_text("1", encoding="ascii")
    sleep_until(end_ns + 20 * MS)
    for _ in range(PROCESSES):
        os.wait()
    return os.read(woken, PROCESSES).decode()


for forget in (False, True):
    print(json.dumps([trial(number, forget) for number in range(TRIALS)]))
