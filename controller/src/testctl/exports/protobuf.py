# SPDX-License-Identifier: Apache-2.0
"""The few messages of Perfetto's trace format that an export has, as bytes.

Source: protos/perfetto/trace/ of Perfetto's repository: Trace.packet = 1; of TracePacket timestamp = 8,
trusted_packet_sequence_id = 10, track_event = 11, track_descriptor = 60.  Perfetto sorts events by time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np

from testctl.records.schema import Array, Ints

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""TrackEvent.Type"""
NS, COUNT, BYTES = 1, 2, 3
"""CounterDescriptor.Unit"""

_TIME_BYTES = 9
"""Of a time below 2^63 as a varint; shorter ones are padded, which every reader of protobuf takes."""
_AT_ONCE = 1 << 16


def field(number: int, value: int | float | str | bytes) -> bytes:
    """A field: a whole number (from 0) as varint, a float as double, text and messages with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    body = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def descriptor(track: int, name: str, parent: int = 0, unit: int | str | None = None) -> bytes:
    """The packet that names a track; without a parent it is a group of tracks, with a unit it has numbers."""
    process = field(3, field(1, track) + field(6, name))  # its id has to be a number of its own
    kind = field(5, parent) + field(2, name) if parent else process
    if unit is not None:
        kind += field(8, field(6 if isinstance(unit, str) else 3, unit))
    return field(1, field(60, field(1, track) + kind))


def event(track: int, kind: int, time_ns: int, name: str = "", notes: Mapping[str, int | str] | None = None) -> bytes:
    """The beginning or the end of a slice, or an instant; notes are shown when it is selected."""
    body = field(9, kind) + field(11, track) + (field(23, name) if name else b"")
    for key, value in (notes or {}).items():
        body += field(4, field(10, key) + field(6, str(value)))
    return field(1, field(8, time_ns) + field(10, 1) + field(11, body))


def counters(track: int, time_ns: Ints, value: Array) -> Iterator[bytes]:
    """The events of a counter, all of one size so that numpy writes them; a value is a double, as in Perfetto."""
    head = field(9, COUNTER) + field(11, track) + field(44, 0.0)
    time = field(8, 0)[:1] + bytes(_TIME_BYTES)
    whole = np.frombuffer(field(1, time + field(10, 1) + field(11, head)), np.uint8)
    at = len(field(1, time)) - _TIME_BYTES
    for low in range(0, len(time_ns), _AT_ONCE):
        times = time_ns[low : low + _AT_ONCE]
        out = np.tile(whole, (len(times), 1))
        for place in range(_TIME_BYTES):
            out[:, at + place] = times >> 7 * place & 0x7F | (0x80 if place < _TIME_BYTES - 1 else 0)
        out[:, -8:] = value[low : low + _AT_ONCE].astype("<f8")[:, None].view(np.uint8)
        yield out.tobytes()
