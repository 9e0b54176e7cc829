# SPDX-License-Identifier: Apache-2.0
"""One pass over a file of packets by the C code of native/: to its connections, or to frames of chosen ones.

pcap (µs, ns, both byte orders, Kuznetzov's) and pcapng, as they are or compressed with gzip or zstd; native/segment.c
lists the link types.  The file is read in pieces, so that memory depends on its connections alone.
"""

from __future__ import annotations

import ctypes
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from testctl.analyse.native import structures as c
from testctl.core.units import show_time
from testctl.records.errors import RecordsError
from testctl.records.pcap import ETHERNET, MAX_SNAPLEN
from testctl.records.schema import Array, Bools
from testctl.system.memory import free_mb

MOST_CONNECTIONS = 1 << 19
"""Connections that are told apart; packets of others are counted."""
_PIECE = 1 << 22
_MOST_PIECE = 1 << 25  # a block of pcapng has up to MOST_RECORD bytes
_SMALL_PIECE = 1 << 16  # of compressed data: where it is damaged, one is lost
_GZIP = 16 + zlib.MAX_WBITS
_OUTPUT = 1 << 20
_MAGICS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_COOKED = 113
_MOST_NS = 10**9 << 32
"""Times of a pcap file are below."""
_SORTED_BYTES = 64
"""Memory for each packet that is sorted: its time, its place, their order."""


@dataclass(frozen=True)
class Scanned:
    """What a file has.

    data         where its packets are read: the file, or a copy of their headers by time
    connections  of the type structures.CONNECTION, in the order of their first packets
    frames       all of them; tcp: with a TCP header; the others by the reason why they are left out
    first_ns, last_ns   the earliest and the latest time
    backwards    frames that are earlier than the frame before, backwards_ns: by how much at most
    notes        what a reader should know of the file
    """

    path: Path
    data: Path
    connections: Array
    frames: int
    tcp: int
    first_ns: int
    last_ns: int
    backwards: int
    backwards_ns: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Clock:
    """To be taken off a file's times: an offset, and a drift in billionths counted from from_ns on."""

    offset_ns: int = 0
    drift_ppb: int = 0
    from_ns: int = 0


UNCHANGED = Clock()


def scan(path: Path, work: Path | None = None) -> Scanned:
    """The connections of a file.

    work: a directory for a copy of the packets' headers by time, if the file's order is another one and there is
    memory to sort them; without that, packets count in the file's order

    Raises RecordsError: not readable, no capture, or no TCP in it; OSError for the directory.
    """
    data = path
    with _walk() as walk:
        notes = _pass(path, walk)
        _refuse_without_tcp(path, walk)
        connections = _connections(walk)
        if walk.backwards and work is not None and _can_sort(walk):
            data = _by_time(path, walk.tcp, work)
            with _walk() as again:
                _pass(data, again)
                connections = _connections(again)
        elif walk.backwards:
            notes.append("they are counted in the file's order")
        if (twice := copied(connections)).any():
            notes.append(
                f"{connections['copies'][twice].sum()} packets are twice in the file: their copies are left out"
            )
            with _walk(twice) as again:
                _pass(data, again)
                connections = _connections(again)
        return Scanned(
            path,
            data,
            connections,
            walk.frames,
            walk.tcp,
            walk.first_ns,
            walk.highest_ns,
            walk.backwards,
            walk.backwards_ns,
            tuple(notes),
        )


def _connections(walk: c.Walk) -> Array:
    data = ctypes.string_at(walk.connections, walk.count * c.CONNECTION.itemsize) if walk.count else b""
    return np.frombuffer(bytearray(data), c.CONNECTION)


def _can_sort(walk: c.Walk) -> bool:
    can = walk.first_ns >= 0 and walk.highest_ns < _MOST_NS and walk.tcp * _SORTED_BYTES < free_mb() << 20
    return bool(can)


def _by_time(path: Path, records: int, work: Path) -> Path:
    """A pcap file of the headers of a capture's packets of TCP, by time."""
    to = work / f"{len(list(work.iterdir()))}.pcap"
    with _walk() as walk, to.open("wb") as file:
        file.write(_header(_COOKED))
        walk.verbatim = 1
        _pass(path, walk, _output(walk, file))
    return sort(to, records)


def copied(connections: Array) -> Bools:
    """Which connections the capture has twice: a quarter of their packets at least are copies, which are counted or
    are not."""
    return np.asarray(4 * connections["copies"].sum(axis=1) >= np.maximum(connections["packets"].sum(axis=1), 1))


def write(scanned: Scanned, targets: Array, to: Path, base_ns: int, clock: Clock = UNCHANGED) -> None:
    """Write the frames of a file that was scanned, headers alone, as pcap in ns of Ethernet.

    targets: of the type structures.TARGET, one for each connection: the hosts' numbers and the ports of its frames
    base_ns: the time that becomes 0

    Raises RecordsError, and OSError for the file that is written.
    """
    with _walk(copied(scanned.connections)) as walk, to.open("wb") as file:
        file.write(_header(ETHERNET))
        walk.targets = targets.ctypes.data
        walk.base_ns, walk.offset_ns = base_ns, clock.offset_ns
        walk.drift_ppb, walk.drift_from_ns = clock.drift_ppb, clock.from_ns
        _pass(scanned.data, walk, _output(walk, file))


def _header(link: int) -> bytes:
    return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, MAX_SNAPLEN, link)


def _output(walk: c.Walk, file: BinaryIO) -> Callable[[], None]:
    """Give the walk a place for what it writes; returns the function that brings it to the file."""
    place = np.empty(_OUTPUT, np.uint8)
    walk.output, walk.size = place.ctypes.data, len(place)

    def flush() -> None:
        file.write(place[: walk.used].data)
        walk.used = 0

    return flush


def sort(path: Path, records: int) -> Path:
    """A file with the records of one that write() wrote, which is removed, by time; records: at least their number."""
    data = np.memmap(path, np.uint8, "r")
    time_ns, places = np.empty(records, np.int64), np.empty(records, np.uint64)
    library = c.library()
    count = library.capture_index(data.ctypes.data, len(data), records, time_ns.ctypes.data, places.ctypes.data)
    places = places[:count][np.argsort(time_ns[:count], kind="stable")]
    del time_ns
    sorted_path = path.with_suffix(".sorted")
    with sorted_path.open("wb") as file:
        file.truncate(len(data))
    to = np.memmap(sorted_path, np.uint8, "r+")
    library.capture_reorder(data.ctypes.data, places.ctypes.data, count, to.ctypes.data)
    del to
    path.unlink()
    return sorted_path


@contextmanager
def _walk(twice: Bools | None = None) -> Iterator[c.Walk]:
    """twice: whose copies do not count"""
    walk = c.Walk(most=MOST_CONNECTIONS)
    if twice is not None:
        walk.twice = twice.ctypes.data
    try:
        yield walk
    finally:
        c.library().capture_free(walk)


def _pass(path: Path, walk: c.Walk, flush: Callable[[], None] | None = None) -> list[str]:
    """Feed the whole file; returns notes about it.  Raises RecordsError."""
    left, notes = b"", []
    try:
        with path.open("rb") as raw:
            for piece in _pieces(path, raw):
                left = _fed(walk, left + piece if left else piece, flush)
                if walk.damage or len(left) > _MOST_PIECE:
                    break
    except (OSError, zlib.error, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise RecordsError(path, f"can't be read: {error.strerror}") from error
        if not walk.frames:
            raise RecordsError(
                path, f"want a compressed capture; got {str(error).partition(chr(10))[0]:.100}"
            ) from error
        notes.append("the compressed file is cut or damaged: what came before that is analysed")
    if walk.damage == c.NO_MEMORY:
        raise RecordsError(path, f"has {walk.count} connections, for which there is not enough memory")
    if walk.damage == c.NO_CAPTURE or not walk.format:
        got = left[:4].hex() or "an empty file"
        raise RecordsError(path, f"want a capture (pcap or pcapng); got {got}", 0 if left else None)
    damage = _damage(walk.damage)
    if damage and not walk.frames:
        raise RecordsError(path, f"want a capture; got {damage}", walk.at)
    if damage:
        notes.append(f"damaged at byte {walk.at}: {damage}; the {walk.frames} packets before are analysed")
    elif left and not notes:
        notes.append("the file ends within a record, which is left out")
    return notes + _counted(walk)


def _fed(walk: c.Walk, data: bytes, flush: Callable[[], None] | None) -> bytes:
    """Feed bytes to the walk; returns those that it did not take."""
    view = np.frombuffer(data, np.uint8)
    taken = 0
    while True:
        taken += c.library().capture_feed(walk, view.ctypes.data + taken, len(data) - taken)
        if flush is not None:
            flush()
        if not walk.full:
            return data[taken:]
        walk.full = 0


def _pieces(path: Path, raw: BinaryIO) -> Iterator[bytes]:
    """The bytes of the capture, decompressed, in pieces."""
    start = raw.read(4)
    raw.seek(0)
    codec = next((name for magic, name in _MAGICS.items() if start.startswith(magic)), None)
    if codec == "gzip":
        yield from _gunzipped(raw)
        return
    stream: Any = raw if codec is None else pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)
    while piece := stream.read(_PIECE if codec is None else _SMALL_PIECE):
        yield piece


def _gunzipped(raw: BinaryIO) -> Iterator[bytes]:
    """What gzip's members contain, up to where they are cut or damaged.  Raises OSError and zlib.error there."""
    member = zlib.decompressobj(_GZIP)
    data = b""
    while data := member.unused_data or raw.read(_SMALL_PIECE):
        if member.eof:
            member = zlib.decompressobj(_GZIP)
        while data:
            yield member.decompress(data, _PIECE)
            data = member.unconsumed_tail
    if not member.eof:
        raise OSError("the compressed data ends within")


def _damage(damage: int) -> str:
    return {
        c.BAD_LENGTH: "a record whose length can't be",
        c.BAD_BLOCK: "a block of pcapng whose two lengths differ",
        c.BAD_INTERFACE: "a packet of an interface that no block describes",
    }.get(damage, "")


def _counted(walk: c.Walk) -> list[str]:
    counts = [
        (walk.fragments, "fragments of IP packets are left out"),
        (walk.cut, "frames are cut within their headers and left out"),
        (walk.unknown_link, f"frames have an unknown link type ({walk.some_link}) and are left out"),
        (walk.short_ip, "packets of TCP are shorter than their headers and left out"),
        (walk.odd_time, "packets have a time whose fraction is above a second: they get that of the packet before"),
        (walk.without_time, "packets have no time (simple packet blocks): they get that of the packet before"),
        (walk.unlisted, f"packets are of connections after the first {MOST_CONNECTIONS} and are left out"),
        (
            walk.backwards,
            f"packets are earlier than the packet before them in the file, by up to "
            f"{show_time(walk.backwards_ns)}: sorted by time",
        ),
    ]
    return [f"{count} {what}" for count, what in counts if count]


def _refuse_without_tcp(path: Path, walk: c.Walk) -> None:
    """Raises RecordsError that says what the file has instead."""
    if walk.count:
        return
    if not walk.frames:
        raise RecordsError(path, "want a capture with TCP; got one without any packet")
    kinds = [
        (walk.unknown_link, f"of the unknown link type {walk.some_link}"),
        (walk.cut, "cut within their headers (snap length)"),
        (walk.fragments, "fragments"),
        (walk.short_ip, "shorter than their headers"),
        (walk.not_tcp, "without TCP"),
    ]
    got = ", ".join(f"{count} {what}" for count, what in kinds if count)
    raise RecordsError(path, f"want a capture with TCP; got {walk.frames} frames: {got}")
