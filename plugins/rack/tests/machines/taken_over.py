# SPDX-License-Identifier: Apache-2.0
"""What an agent that was taken over tries, under the lines of its unit; prints how each attempt ended, as JSON.

python3 taken_over.py FILE      FILE: where to write that, in a directory of the agent's
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable

LIBC = ctypes.CDLL(None, use_errno=True)
CALLS = {
    "init_module": 175, "finit_module": 313, "delete_module": 176, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsmount": 432, "mount_setattr": 442, "pivot_root": 155, "kexec_load": 246, "swapon": 167, "ptrace": 101,
    "perf_event_open": 298, "open_by_handle_at": 304, "unshare": 272, "setns": 308, "chroot": 161, "iopl": 172,
    "add_key": 248, "settimeofday": 164, "clone3": 435, "userfaultfd": 323,
}  # fmt: skip
"""Of x86-64, called with words that are wrong: only the filter answers EPERM to all of them."""
FILES = (
    "/etc/cron.d/testctl-escaped", "/etc/testctl/agent.json", "/opt/testctl-agent/tgen", "/usr/bin/testctl-escaped",
    "/boot/testctl-escaped", "/var/lib/testctl/packages", "/root/testctl-escaped", "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
    "/sys/kernel/uevent_helper", "/sys/kernel/tracing/kprobe_events", "/sys/kernel/mm/ksm/run", "/sys/power/state",
    "/sys/fs/cgroup/cgroup.procs", "/dev/mem", "/dev/kmsg",
)  # fmt: skip
PROGRAMS = {
    "remount": "mount -o remount,bind,rw /",
    "umount": "umount -l /root",
    "mount": "mount -t tmpfs tmpfs /mnt",
    "namespace": "unshare --mount true",
    "join": "nsenter --mount=/proc/1/ns/mnt true",
    "time": "date -s 2001-01-01",
    "own": "touch /var/lib/testctl/agent/own",
}


def called(number: int) -> str:
    ctypes.set_errno(0)
    LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(-1) for _ in range(5)))
    return os.strerror(ctypes.get_errno()) if ctypes.get_errno() else "done"


def opened(path: str) -> str:
    """Opened for writing alone: nothing is written, as it may be the machine's own."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "done"


def ran(command: str) -> str:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    return "done" if done.returncode == 0 else done.stderr.strip() or f"exit {done.returncode}"


def attempt(what: Callable[[], str]) -> str:
    """In a process of its own, which a filter may kill."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writing, what().encode())
        os._exit(0)
    os.close(writing)
    said = os.read(reading, 4096).decode()
    os.waitpid(pid, 0)
    return said or "killed"


def main() -> None:
    found = {name: attempt(lambda command=command: ran(command)) for name, command in PROGRAMS.items()}
    found |= {path: attempt(lambda path=path: opened(path)) for path in FILES}
    found |= {name: attempt(lambda number=number: called(number)) for name, number in CALLS.items()}
    with open(sys.argv[1], "w") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main()
