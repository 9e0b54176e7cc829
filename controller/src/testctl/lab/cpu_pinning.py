# SPDX-License-Identifier: Apache-2.0
"""A processor of its own for each lab, as long as there are enough.

A lab's kernel and the processes in it take turns, thousands of times a virtual second.  Left alone the machine puts
them on different processors, and each turn wakes an idle one, which costs more than what is done in a turn: on a
virtual machine of two processors a lab that stays on one of them needs half the time.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_TAKEN = "\0testctl-lab-processor-{}"
"""A socket's name without a file, which goes with the process that has it, however that ends."""
_SYS = Path("/sys/devices/system/cpu")


@contextmanager
def own_processor(allowed: Iterable[int] | None = None) -> Iterator[int | None]:
    """One that no other lab on this machine has; None when all are taken.

    allowed: those to choose from; None: those that this process may run on
    """
    with ExitStack() as held:
        yield next((cpu for cpu in spread(allowed or os.sched_getaffinity(0)) if _take(cpu, held)), None)


def spread(cpus: Iterable[int], sys: Path = _SYS) -> list[int]:
    """In the order in which they are taken: of each core its first thread, then of each its second."""
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
    """Which of its core's threads a processor is, from 0."""
    try:
        said = (sys / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return 0
    siblings = [
        number
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", said)
        for number in range(int(first), int(last or first) + 1)
    ]
    return siblings.index(cpu) if cpu in siblings else 0
