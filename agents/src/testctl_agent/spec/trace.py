# SPDX-License-Identifier: Apache-2.0
"""Traces of a link in Mahimahi's format: a line for each opportunity to send a packet of 1500 bytes, its time in ms.

A time may stand on several lines.  The trace is repeated from its last time on.  As a value a trace is one text,
"trace " and the differences of its times as variable-length numbers, compressed, in base64.
Source: Mahimahi (Netravali et al., USENIX ATC 2015), mm-link(1).
"""

from __future__ import annotations

import base64
import binascii
import zlib
from array import array
from collections.abc import Iterable
from pathlib import Path

MAX_OPPORTUNITIES = 2**21
MAX_MS = 2**32 - 1
MAX_FILE_BYTES = 32 * 2**20
OPPORTUNITY_BYTES = 1504
"""A packet's from its IP header on, and 4 more (p4c_ebpf/runtime/link_model.h)."""
MAX_CHARS = 2**20
"""Of a value: as many as an agent takes (engine/limits.py)."""
WORD = "trace "
_WANT = "a trace in Mahimahi's format: on each line a whole number of ms, not less than the one before"


def is_trace(value: object) -> bool:
    return isinstance(value, str) and value.startswith(WORD)


def read(data: bytes) -> array[int]:
    """The times in ms of a file's opportunities.  Raises ValueError "line N: want …; got …"."""
    times = array("I")
    before = 0
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        digits = line.rstrip(b"\r")
        if not digits.isdigit() or len(digits) > 10 or int(digits) > MAX_MS:
            shown = digits[:40].decode("ascii", "replace")
            raise ValueError(f"line {number}: want {_WANT}; got {shown!r}")
        ms = int(digits)
        if ms < before:
            raise ValueError(f"line {number}: want {_WANT}; got {ms} after {before}")
        if number > MAX_OPPORTUNITIES:
            raise ValueError(f"line {number}: want at most {MAX_OPPORTUNITIES} lines")
        times.append(ms)
        before = ms
    if not times:
        raise ValueError(f"line 1: want {_WANT}; got an empty file")
    if not before:
        raise ValueError(f"line {len(times)}: want a trace that ends after 0 ms, from which it is repeated; got 0")
    return times


def show(times: Iterable[int]) -> str:
    """The value that stands for a trace."""
    packed, before = bytearray(), 0
    for ms in times:
        more, before = ms - before, ms
        while more >= 128:
            packed.append(more & 127 | 128)
            more >>= 7
        packed.append(more)
    return WORD + base64.b64encode(zlib.compress(bytes(packed), 9)).decode()


def value_of(data: bytes, place: Path | None = None) -> str:
    """The value of a file, wherever it lies.  Raises ValueError "line N: want …; got …"."""
    times = read(data)
    value = show(times)
    if len(value) > MAX_CHARS:
        raise ValueError(f"line {len(times)}: want a trace of at most {MAX_CHARS} characters, packed; got {len(value)}")
    return value


def parse(text: str) -> array[int]:
    """The times of a value.  Raises ValueError."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text.removeprefix(WORD), validate=True), 5 * MAX_OPPORTUNITIES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"want a trace as testctl writes it; got {text[:40]!r}") from error
    times, before, more, shift = array("I"), 0, 0, 0
    for byte in data:
        more |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            before += more
            more = shift = 0
            if before > MAX_MS or len(times) >= MAX_OPPORTUNITIES:
                raise ValueError(f"want at most {MAX_OPPORTUNITIES} opportunities, up to {MAX_MS} ms")
            times.append(before)
    if not before or shift or not unpacker.eof:
        raise ValueError(f"want a trace as testctl writes it; got {text[:40]!r}")
    return times
