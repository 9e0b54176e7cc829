# SPDX-License-Identifier: Apache-2.0
"""Opens pcap files, and describes damage of one.  Their records are read in C (native/source.c).

Source: IETF draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testctl.records.errors import RecordsError
from testctl.records.schema import Array

FILE_HEADER = 24
ETHERNET = 1
MAX_SNAPLEN = 262144
_MAGICS = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}  # -> ns per unit of the fraction
LENGTH, FRACTION, MORE_THAN_PACKET = 1, 2, 3
"""Damage of a record: what packets_check() returns."""


@dataclass(frozen=True)
class Capture:
    """A pcap file of Ethernet frames, mapped into memory.

    data: uint8, the file; fraction_ns: of a unit of the time stamp's fraction; longest: bytes of a record
    """

    path: Path
    data: Array
    big_endian: bool
    fraction_ns: int
    longest: int

    @property
    def fractions(self) -> int:
        """Fractions in a second; a time stamp's is below."""
        return 10**9 // self.fraction_ns

    def damaged(self, kind: int, at: int) -> RecordsError:
        """The error for the record at a byte; kind: LENGTH, FRACTION or MORE_THAN_PACKET."""
        _, fraction, captured, original = struct.unpack_from(
            ">IIII" if self.big_endian else "<IIII", self.data.data, at
        )
        what = {
            LENGTH: f"want a captured length up to {self.longest}; got {captured}",
            FRACTION: f"want a fraction of a second below {self.fractions}; got {fraction}",
            MORE_THAN_PACKET: f"want a captured length up to the packet's {original}; got {captured}",
        }[kind]
        return RecordsError(self.path, what, at)


def open_pcap(path: Path) -> Capture:
    """A capture of Ethernet frames.  Raises RecordsError when it is not one."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size < FILE_HEADER:
                raise RecordsError(path, f"want a pcap file header of {FILE_HEADER} bytes; got a file of {size} bytes")
            data = np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise RecordsError(path, f"can't be read: {error.strerror}") from error
    for order in "<>":
        magic, _, _, _, _, snaplen, link = struct.unpack_from(order + "IHHiIII", data.data)
        if magic in _MAGICS:
            break
    else:
        raise RecordsError(path, f"want a pcap magic number; got 0x{magic:08x}", 0)
    if link & 0xFFFF != ETHERNET:
        raise RecordsError(path, f"want link type {ETHERNET} (Ethernet); got {link & 0xFFFF}", 20)
    longest = snaplen if 0 < snaplen <= MAX_SNAPLEN else MAX_SNAPLEN
    return Capture(path, data, order == ">", _MAGICS[magic], longest)
