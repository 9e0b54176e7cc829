# SPDX-License-Identifier: Apache-2.0
"""Assigns each lab its own processor, as long as there are enough.

A lab's kernel and its processes run alternately and switch thousands of times a virtual second.  By default the
machine runs them on different processors, and each switch wakes an idle one.  That costs more than the work between
two switches: on a virtual machine with two processors a lab that stays on one of them needs half the time.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_TAKEN = "\0testctl-lab-processor-{}"
"""An abstract socket's name; the kernel removes the socket with its process."""
_SYS = Path("/sys/devices/system/cpu")


@contextmanager
def own_processor(allowed: Iterable[int] | None = None) -> Iterator[int | None]:
    """A processor that no other lab of this machine has; None if all are taken.

    allowed: processors to choose from; None: those that this process may run on
    """
    with ExitStack() as held:
        yield next((cpu for cpu in spread(allowed or os.sched_getaffinity(0)) if _take(cpu, held)), None)


def spread(cpus: Iterable[int], sys: Path = _SYS) -> list[int]:
    """In the order in which they are assigned: the first thread of each core, then the second."""
    return sorted(cpus, key=lambda cpu: (_thread(cpu, sys), -cpu))


def _take(cpu: int, held: ExitStack) -> bool:
    name = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        name.bind(_TAKEN.format(cpu))
        held.callback(name.close)
        return True
    name.close()
    return False


def _thread(cpu: int, sys: Path) -> int:
    """The index of a processor among the threads of its core, from 0."""
    try:
        text = (sys / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return 0
    siblings = [
        number
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", text)
        for number in range(int(first), int(last or first) + 1)
    ]
    return siblings.index(cpu) if cpu in siblings else 0
