# SPDX-License-Identifier: Apache-2.0
"""The structures of packets.h for ctypes, in its order.  Library() refuses those whose sizes differ."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int8, c_int16, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p
from typing import Any

from testctl_agent.spec.errors import TestbedError

DONE, MORE_RARE, UNORDERED, DAMAGED = range(4)
"""What packets_read() returns."""
_EDGES, _ACE = 8, 4
RARE = _EDGES + _ACE
_TELEMETRY_FIELDS = 17

_Fields = list[tuple[str, Any]]


def _of(kind: Any, *names: str) -> _Fields:
    return [(name, kind) for name in names]


class Packet(ctypes.Structure):
    _fields_ = [
        *_of(c_int64, "time_ns", "tsval", "tsecr", "left_ns"),
        ("edges", c_int64 * _EDGES),
        ("ace", c_int64 * _ACE),
        *_of(c_uint32, "seq", "ack"),
        ("window", c_int64),
        *_of(c_int32, "stream", "length", "headers", "queue_bytes", "ordinal", "first_ordinal"),
        *_of(c_int16, "flow", "conn"),
        *_of(c_int8, "direction", "wscale"),
        *_of(c_uint8, "flags", "ecn", "fate", "out", "has_sacks", "has_ace"),
    ]


class Source(ctypes.Structure):
    """A capture, or the telemetry of a switch."""

    _fields_ = [
        ("data", c_void_p),
        *_of(c_uint64, "size", "at", "released", "records"),
        ("offset_ns", c_int64),
        ("masks", c_uint64 * _TELEMETRY_FIELDS),
        ("offsets", c_uint32 * _TELEMETRY_FIELDS),
        *_of(c_uint32, "record_bytes", "fractions", "fraction_ns", "longest"),
        *_of(c_int32, "where", "here", "big_endian", "ended"),
        ("now", Packet),
        ("last_ns", c_int64),
    ]


class Stream(ctypes.Structure):
    """A direction of a connection."""

    _fields_ = [
        *_of(c_int64, "syn_ns", "data_ns", "ack_ns"),
        *_of(c_uint32, "syn_seq", "data_seq", "acked"),
        *_of(c_uint8, "syn_seen", "data_seen", "ack_seen", "seen"),
        *_of(c_int32, "wscale", "wscale_where"),
        ("base", c_uint32),
        ("shift", c_int32),
    ]


class Series(ctypes.Structure):
    """A stream as one source has it."""

    _fields_ = [
        *_of(c_int64, "seq", "ack", "highest"),
        *_of(c_uint32, "last_seq", "last_ack"),
        *_of(c_int32, "longest", "begun", "elsewhere", "whole"),
    ]


class Address(ctypes.Structure):
    _fields_ = [("bytes", c_uint8 * 16), *_of(c_int32, "size", "host")]


class Columns(ctypes.Structure):
    """Pointers to columns; `retrans` and `out` are bits."""

    _fields_ = _of(
        c_void_p,
        *("time_ns", "seq", "ack", "window", "tsval", "tsecr", "left_ns"),
        *("length", "wire_bytes", "queue_bytes", "ordinal", "first_ordinal"),
        *("where", "flow", "conn", "segs"),
        *("direction", "flags", "ecn", "fate", "retrans", "out"),
        *("rare", "rare_row"),
    )


class Job(ctypes.Structure):
    _fields_ = [
        ("sources", POINTER(Source)),
        ("streams", POINTER(Stream)),
        ("series", POINTER(Series)),
        ("addresses", POINTER(Address)),
        *_of(c_void_p, "by_port", "client_port", "parallel", "from_", "to", "place_flow", "place_conn", "mtu", "fits"),
        ("to_columns", Columns),
        ("t0_ns", c_int64),
        *_of(c_uint64, "rows", "rares", "most_rares"),
        *_of(c_int32, "count", "hosts", "flows", "conns", "places", "known", "merged", "begun"),
    ]


class Grouping(ctypes.Structure):
    """What rows are told apart by (rows.h)."""

    _fields_ = [
        *_of(c_void_p, "flow", "where", "direction", "out"),
        *_of(c_int64, "count", "places", "groups"),
        *_of(c_void_p, "ends", "rows"),
    ]


class Library:
    """The functions of the library.  Raises TestbedError for one that is not of this code."""

    def __init__(self, loaded: ctypes.CDLL) -> None:
        path = loaded._name
        try:
            self.read = loaded.packets_read
            self.check = loaded.packets_check
            self.count_segments = loaded.packets_count_segments
            self.search = loaded.packets_search
            self.take = loaded.packets_take
            self.group = loaded.packets_group
            sizes = loaded.packets_sizes
        except AttributeError as error:
            raise TestbedError(f"{path}: want the library that reads packets; got {error}") from error
        self.read.argtypes = self.count_segments.argtypes = [POINTER(Job)]
        self.check.argtypes = [POINTER(Source)]
        self.search.argtypes = [c_void_p, c_int64, c_void_p, c_int64, c_int32, c_void_p]
        self.take.argtypes = [c_void_p, c_int32, c_int64, c_void_p, c_int32, c_int64, c_void_p]
        self.take.restype = c_int64
        self.group.argtypes = [POINTER(Grouping)]
        for function in (self.count_segments, self.search, self.group):
            function.restype = None
        ours = [ctypes.sizeof(kind) for kind in (Source, Stream, Series, Address, Columns, Job)]
        theirs = (c_uint64 * len(ours))()
        sizes(theirs)
        if list(theirs) != ours:
            raise TestbedError(f"{path}: want structures of {ours} bytes; got {list(theirs)}")
