# SPDX-License-Identifier: Apache-2.0
"""The memory that the kernels of one lab share (lab/kernel/lab_links_time.c): their times, and rings for packets.

A link is cut where its two ends are of different parts of a point (core/point.py).  A switch's port is known to let a
packet arrive at least its delay after it was queued; a host's packet reaches its switch at once.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

from testctl.core.path import least_delay_ns
from testctl.core.point import Part, Point

MOST_KERNELS = 64
RINGS_BYTES, RING_BITS = 1 << 26, range(18, 21)
"""Of all rings together, about; how many bits the bytes of each may have."""
NEVER = (1 << 63) - 1
FORMAT = 0x324B4E4C
PAGE = 4096
SPINS = 20_000
"""How often a kernel that waits looks before it lets its processor go, where each has one."""

_HEAD = struct.Struct("=6IQI28x")
_JOINED = 5
_MEMBER = struct.Struct("=3Q3I28x")
_DISTANCES = MOST_KERNELS * MOST_KERNELS


@dataclass(frozen=True)
class Cut:
    """A link between two kernels.

    ends   the entities
    parts  theirs
    ahead  ns, the delay by which each end knows before when its packets arrive; 0: not before
    """

    number: int
    ends: tuple[str, str]
    parts: tuple[int, int]
    ahead: tuple[int, int]


def cuts(point: Point, parts: Sequence[Part]) -> list[Cut]:
    """The links between the parts of a point.  Raises TestbedError for a way around without a delay, and too many."""
    if len(parts) > MOST_KERNELS:
        raise TestbedError(f"a lab's kernels: want at most {MOST_KERNELS}; got {len(parts)}")
    part_of = {name: number for number, part in enumerate(parts) for name in part.entities}
    links = []
    for number, ends in enumerate(point.topology.links):
        start, end = ends
        if part_of[start] != part_of[end]:
            ahead = (_ahead_ns(point, start, end), _ahead_ns(point, end, start))
            links.append(Cut(number, (start, end), (part_of[start], part_of[end]), ahead))
    _refuse_at_once(links)
    return links


def _ahead_ns(point: Point, start: str, end: str) -> int:
    return least_delay_ns(point, start, end) if start in point.topology.switches else 0


def _refuse_at_once(links: list[Cut]) -> None:
    """Where no way around takes any time, no kernel could go first."""
    after: dict[int, set[int]] = {}
    of: dict[tuple[int, int], str] = {}
    for cut in links:
        for side in (0, 1):
            if not cut.ahead[side]:
                start, end = cut.parts[side], cut.parts[1 - side]
                after.setdefault(start, set()).add(end)
                of[start, end] = f"{cut.ends[side]} to {cut.ends[1 - side]}"
    left = set(after)
    while free := {part for part in left if not after[part] & left}:
        left -= free
    if left:
        ways = ", ".join(of[start, end] for start in sorted(left) for end in sorted(after[start] & left))
        raise TestbedError(
            f"kernels of their own: want a delay of the links between them, by which one can run ahead of the other; "
            f"got none from {ways} (set the delay of the switch, such as [switch, delay, 5us], or let "
            "a host share its switch's partition)"
        )


def distances(count: int, links: list[Cut]) -> list[list[int]]:
    """[from][to]: the least time in ns in which a kernel can have an effect on another; NEVER: it can't."""
    far = [[0 if start == end else NEVER for end in range(count)] for start in range(count)]
    for cut in links:
        (start, end), (there, back) = cut.parts, cut.ahead
        far[start][end] = min(far[start][end], there)
        far[end][start] = min(far[end][start], back)
    for way in range(count):
        for start in range(count):
            for end in range(count):
                far[start][end] = min(far[start][end], far[start][way] + far[way][end])
    return far


@contextmanager
def shared_memory(count: int, links: list[Cut], processors: int) -> Iterator[Path]:
    """A file that is nowhere but in memory, and there no longer than this process.

    processors: how many there are.  Raises TestbedError where there is no space for it.
    """
    pairs = sorted({pair for cut in links for pair in (cut.parts, cut.parts[::-1])})
    rings = {pair: number for number, pair in enumerate(pairs, 1)}
    everyone = range(MOST_KERNELS)
    numbers = [rings.get((start, end), 0) for start, end in product(everyone, everyone)]
    far = distances(count, links)
    table = [far[start][end] if max(start, end) < count else 0 for start, end in product(everyone, everyone)]
    offset = -(-(_HEAD.size + MOST_KERNELS * _MEMBER.size + 12 * _DISTANCES) // PAGE) * PAGE
    ring_bytes = 1 << max(bits for bits in RING_BITS if bits == RING_BITS[0] or len(rings) << bits <= RINGS_BYTES)
    size = offset + len(rings) * (PAGE + ring_bytes)
    spins, turns = SPINS if processors >= count else 0, processors == 1
    head = _HEAD.pack(FORMAT, count, ring_bytes, spins, 0, 0, offset, turns)
    members = _MEMBER.pack(0, 0, NEVER, 0, 0, 0) * MOST_KERNELS
    tables = struct.pack(f"={_DISTANCES}Q", *table) + struct.pack(f"={_DISTANCES}I", *numbers)
    with open(os.memfd_create("testctl-shared"), "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            why = f"want {size >> 10} kB of memory for what {count} kernels of a lab share; {error.strerror}"
            raise TestbedError(why) from error
        file.write(head + members + tables)
        file.flush()
        yield Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")


def joined(path: Path) -> int:
    """How many kernels have begun to share the time, each once."""
    with path.open("rb") as file:
        return int(_HEAD.unpack(file.read(_HEAD.size))[_JOINED])
