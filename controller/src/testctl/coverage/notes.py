# SPDX-License-Identifier: Apache-2.0
"""gcc's notes about an object: its functions as graphs of blocks and arcs, and the lines of each block.

The format is gcc 12's and later (gcc/gcov-io.h): lengths in bytes, a checksum in the head.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from testctl_agent.spec.errors import TestbedError

NOTES, DATA = 0x67636E6F, 0x67636461
FIRST_VERSION = 12
_FUNCTION, _BLOCKS, _ARCS, _LINES, _COUNTERS = 0x01000000, 0x01410000, 0x01430000, 0x01450000, 0x01A10000
_ON_TREE, _FAKE = 1, 2


@dataclass(frozen=True)
class Arc:
    """From a block to another; counted: has a counter, the others follow from them; fake: of a call that may not
    return."""

    source: int
    target: int
    counted: bool
    fake: bool


@dataclass
class Function:
    """A function of an object.

    name, file, line  as in the source
    end       its last line
    key       what its counters have, too: ident, checksums of lines and of the graph
    blocks    how many; 0 is the entry, 1 the exit
    arcs      in their order; the counted ones have counters, in the same order
    lines     (file, line) of a block
    """

    name: str
    file: str
    line: int
    end: int
    key: tuple[int, int, int]
    blocks: int = 0
    arcs: list[Arc] = field(default_factory=list)
    lines: dict[int, list[tuple[str, int]]] = field(default_factory=dict)


class _Reader:
    def __init__(self, data: bytes, where: str) -> None:
        self._data, self._where, self.at = data, where, 0

    def number(self) -> int:
        try:
            (number,) = struct.unpack_from("<I", self._data, self.at)
        except struct.error as error:
            raise TestbedError(f"{self._where}: byte {self.at}: want a number; the file ends") from error
        self.at += 4
        return int(number)

    def text(self) -> str:
        length = self.number()
        text = self._data[self.at : self.at + length]
        if len(text) < length:
            raise TestbedError(f"{self._where}: byte {self.at}: want {length} bytes of text; the file ends")
        self.at += length
        return text.rstrip(b"\0").decode(errors="replace")

    def counters(self, count: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(f"<{count}q", self._data, self.at)
        except struct.error as error:
            raise TestbedError(f"{self._where}: byte {self.at}: want {count} counters; the file ends") from error

    def records(self, magic: int) -> Iterator[tuple[int, int]]:
        """(tag, where it ends) of each record behind the head; the place is then the record's first byte.

        Counters that are all 0 are left out, their length is negative.
        """
        if (got := self.number()) != magic:
            raise TestbedError(f"{self._where}: want a file of gcov ({magic:#x}); got {got:#x}")
        if (version := self._version()) < FIRST_VERSION:
            raise TestbedError(f"{self._where}: want gcc {FIRST_VERSION} or later; it was compiled by gcc {version}")
        self.at += 8  # stamp and checksum
        if magic == NOTES:
            self.text()  # the directory of the compiler
            self.number()
        while self.at < len(self._data):
            if not (tag := self.number()):
                return
            length = self.number()
            end = self.at + length - (length >> 31 << 32)
            place = self.at
            yield tag, end
            self.at = max(place, end)

    def _version(self) -> int:
        """12 of "B22*": letters and digits, the major version's tens in the first."""
        tens, units, *_ = self.number().to_bytes(4, "big")
        return (tens - ord("A")) * 10 + units - ord("0")


def functions_of(data: bytes, where: str) -> list[Function]:
    """The functions in the bytes of a .gcno file.  Raises TestbedError."""
    functions: list[Function] = []
    reader = _Reader(data, where)
    for tag, end in reader.records(NOTES):
        if tag == _FUNCTION:
            key = (reader.number(), reader.number(), reader.number())
            name = reader.text()
            reader.number()  # whether the compiler made it
            file, line, _, end_line = reader.text(), reader.number(), reader.number(), reader.number()
            functions.append(Function(name, file, line, end_line, key))
        elif tag == _BLOCKS:
            functions[-1].blocks = reader.number()
        elif tag == _ARCS:
            source = reader.number()
            while reader.at < end:
                target, flags = reader.number(), reader.number()
                functions[-1].arcs.append(Arc(source, target, not flags & _ON_TREE, bool(flags & _FAKE)))
        elif tag == _LINES:
            block = reader.number()
            functions[-1].lines[block] = _lines(reader)
    return functions


def _lines(reader: _Reader) -> list[tuple[str, int]]:
    file, lines = "", []
    while True:
        if line := reader.number():
            lines.append((file, line))
        elif not (file := reader.text()):
            return lines


def counters_of(data: bytes, where: str) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Function's key -> its counters, of the bytes of a .gcda file.  Raises TestbedError."""
    counters: dict[tuple[int, int, int], tuple[int, ...]] = {}
    reader = _Reader(data, where)
    key = (0, 0, 0)
    for tag, end in reader.records(DATA):
        if tag == _FUNCTION and end > reader.at:
            key = (reader.number(), reader.number(), reader.number())
        elif tag == _COUNTERS and end < reader.at:
            counters[key] = (0,) * ((reader.at - end) // 8)
        elif tag == _COUNTERS:
            counters[key] = reader.counters((end - reader.at) // 8)
    return counters
