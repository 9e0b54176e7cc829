# SPDX-License-Identifier: Apache-2.0
"""The structures of capture.h for ctypes, in its order.  library() refuses those whose sizes differ."""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, c_int8, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
from testctl_agent.spec.errors import TestbedError

from testctl.records.native import loaded

NOT_KNOWN = 255
WHOLE, NO_CAPTURE, BAD_LENGTH, BAD_BLOCK, BAD_INTERFACE, NO_MEMORY = range(6)
"""enum damage"""


def _of(kind: Any, *names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names]


class Interface(ctypes.Structure):
    _fields_ = [("per_second", c_uint64), ("offset_s", c_int64), *_of(c_uint32, "link", "decimal")]


class Hole(ctypes.Structure):
    _fields_ = [("time_ns", c_int64), *_of(c_uint32, "start", "end", "number", "unused")]


class Connection(ctypes.Structure):
    _fields_ = [
        ("address", c_uint8 * 16 * 2),
        *_of(c_int64, "first_ns", "last_ns", "syn_ns", "synack_ns", "ack_ns", "silent_ns"),
        ("recent_ns", c_int64 * 4 * 2),
        ("recent", c_uint64 * 4 * 2),
        ("holes", Hole * 4 * 2),
        ("bytes", c_uint64 * 2),
        *_of(
            c_uint32 * 2,
            *("packets", "data", "again", "reordered", "zero_windows", "resets", "fins", "syns"),
            *("outgoing", "incoming", "partial", "copies", "too_big"),
            *("isn", "highest", "acked", "largest"),
        ),
        *_of(c_uint32, "before", "hash"),
        *_of(c_uint16 * 2, "port", "mss"),
        *_of(c_uint8 * 2, "syn_seen", "begun", "ttl", "syn_flags", "ect", "acks_seen"),
        ("wscale", c_int8 * 2),
        *_of(c_uint8, "family", "opener"),
    ]


class Target(ctypes.Structure):
    _fields_ = [
        *_of(c_uint32, "client_host", "server_host"),
        *_of(c_uint16, "client_port", "server_port"),
        *_of(c_uint8, "client", "written"),
    ]


class Walk(ctypes.Structure):
    _fields_ = [
        ("interfaces", Interface * 256),
        ("connections", POINTER(Connection)),
        *_of(c_void_p, "slots", "targets", "twice", "output"),
        *_of(c_uint64, "size", "used"),
        *_of(c_uint64, "at", "frames", "tcp", "not_tcp", "fragments", "cut", "short_ip", "without_time", "odd_time"),
        *_of(c_uint64, "unlisted", "unknown_link", "backwards"),
        *_of(c_int64, "backwards_ns", "last_ns", "first_ns", "final_ns", "highest_ns"),
        *_of(c_int64, "base_ns", "offset_ns", "drift_ppb", "drift_from_ns"),
        *_of(c_uint32, "count", "capacity", "mask", "most", "known", "extra", "some_link", "fraction_ns"),
        *_of(c_int32, "format", "big_endian", "damage", "full", "swapped", "verbatim"),
    ]


CONNECTION: np.dtype[Any] = np.dtype(Connection)
TARGET: np.dtype[Any] = np.dtype(Target)


@functools.cache
def library() -> ctypes.CDLL:
    """The functions of walk.c.  Raises TestbedError for a library that is not of this code."""
    native = loaded()
    try:
        native.capture_feed.argtypes = [POINTER(Walk), c_void_p, c_uint64]
        native.capture_feed.restype = c_uint64
        native.capture_free.argtypes = [POINTER(Walk)]
        native.capture_free.restype = None
        native.capture_index.argtypes = [c_void_p, c_uint64, c_uint64, c_void_p, c_void_p]
        native.capture_index.restype = c_uint64
        native.capture_reorder.argtypes = [c_void_p, c_void_p, c_uint64, c_void_p]
        native.capture_reorder.restype = None
        sizes = (c_uint64 * 3)()
        native.capture_sizes(sizes)
    except AttributeError as error:
        raise TestbedError(f"{native._name}: want the library that reads captures; got {error}") from error
    ours = [ctypes.sizeof(kind) for kind in (Connection, Target, Walk)]
    if list(sizes) != ours:
        raise TestbedError(f"{native._name}: want structures of {ours} bytes; got {list(sizes)}")
    return native
