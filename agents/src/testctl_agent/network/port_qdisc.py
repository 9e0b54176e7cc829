# SPDX-License-Identifier: Apache-2.0
"""testctl_port, the qdisc of the lab's kernel for a switch's port with an AQM (lab/kernel/lab_port.c)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

KIND = "testctl_port"
CHILD = 4
"""The AQM that is a qdisc of Linux's own, below class 1."""
COUNTS = ("marked", "dropped", "full")
WORDS = 12
_OPTIONS = struct.Struct(f"={6 + WORDS}Q")
_COUNTS = struct.Struct(f"={len(COUNTS)}Q")


@dataclass(frozen=True)
class Options:
    """struct port_options: rate in bit/s, delay in ns, buffer and framing in bytes; 0: none.

    kind, seed, words  the AQM's (spec/aqm.py)
    """

    rate: int = 0
    delay: int = 0
    buffer: int = 0
    framing: int = 0
    kind: int = 0
    seed: int = 0
    words: Sequence[int] = ()

    def pack(self) -> bytes:
        padding = [0] * (WORDS - len(self.words))
        link = (self.rate, self.delay, self.buffer, self.framing)
        return _OPTIONS.pack(*link, self.kind, self.seed, *self.words, *padding)


def parse_counts(data: bytes) -> dict[str, int]:
    """What the port's AQM did: packets marked, dropped by it, and dropped by the full buffer."""
    if len(data) < _COUNTS.size:
        return {}
    return dict(zip(COUNTS, _COUNTS.unpack_from(data), strict=True))
