# SPDX-License-Identifier: Apache-2.0
"""What Tofino 1's traffic manager counts in, and how a port model becomes that: the one place.

Its buffer is made of cells of 80 bytes, and a packet takes whole cells.  A shaper's rate is in
kbit/s.  Every conversion says to which side it rounds; reading back converts the number in force,
so that what is reported is what the hardware was given.
Source: BF-RT fixed functions, tables tm.queue.buffer and tm.port.sched_shaping.
"""

from __future__ import annotations

CELL_BYTES = 80
MAX_CELLS = (1 << 18) - 1
"""Of one queue's limit: about 21 MB, the size of the chip's buffer."""
MAX_KBPS = 400_000_000
BURST_BYTES = 16384
"""Of a shaper: two packets of 8 kB may leave back to back; less makes it slower than asked for."""
MAX_PRIORITY = (1 << 24) - 1


def cells(bytes_: int) -> int:
    """A limit in bytes as whole cells, rounded down (at least one): never more buffer than asked for."""
    found = max(1, bytes_ // CELL_BYTES)
    if bytes_ < 1 or found > MAX_CELLS:
        raise ValueError(f"want 1 to {MAX_CELLS * CELL_BYTES} bytes; got {bytes_}")
    return found


def cell_bytes(count: int) -> int:
    """The bytes of so many cells."""
    return count * CELL_BYTES


def threshold_cells(bytes_: int) -> int:
    """The depth in cells at which a packet is marked, rounded up: never earlier than asked for."""
    return -(-bytes_ // CELL_BYTES)


def kbps(rate_bps: int) -> int:
    """A rate in bit/s as kbit/s, rounded down (at least one): never faster than asked for."""
    found = max(1, rate_bps // 1000)
    if rate_bps < 1 or found > MAX_KBPS:
        raise ValueError(f"want 1 bit/s to {MAX_KBPS} kbit/s; got {rate_bps} bit/s")
    return found


def bps(kbps_: int) -> int:
    return kbps_ * 1000


def match_priority(priority: int) -> int:
    """The driver's priority, of which the highest wins, as $MATCH_PRIORITY, of which the lowest does."""
    if not 0 <= priority <= MAX_PRIORITY:
        raise ValueError(f"want a priority of 0 to {MAX_PRIORITY}; got {priority}")
    return MAX_PRIORITY - priority
