# SPDX-License-Identifier: Apache-2.0
"""The structures of lab/cc/testctl_cc.h, for ctypes; host.py checks that they agree with what was compiled."""

from __future__ import annotations

import ctypes
from ctypes import c_uint8, c_uint32, c_uint64
from enum import IntEnum


class Operation(IntEnum):
    """enum cc_operation"""

    INIT = 0
    SAMPLE = 1
    ACK = 2
    LOSS = 3
    ECN = 4
    TIMEOUT = 5
    RESTART = 6
    UNDO = 7
    RECOVERY_ENTER = 8
    RECOVERY_ACK = 9
    RECOVERY_EXIT = 10


class Event(ctypes.Structure):
    """struct cc_event: what happened."""

    _fields_ = [
        ("now_us", c_uint64),
        ("acked", c_uint32),
        ("lost", c_uint32),
        ("delivered", c_uint32),
        ("pipe", c_uint32),
        ("flight", c_uint32),
        ("sent", c_uint32),
        ("rtt_us", c_uint32),
        ("srtt_us", c_uint32),
        ("mss_bytes", c_uint32),
        ("prior_cwnd", c_uint32),
        ("advanced", c_uint8),
        ("limited", c_uint8),
        ("pad", c_uint8 * 6),
    ]


class Window(ctypes.Structure):
    """struct cc_window: the decision."""

    _fields_ = [("cwnd", c_uint32), ("ssthresh", c_uint32), ("pacing_Bps", c_uint64)]


class Private(ctypes.Structure):
    """struct cc_private: a connection's memory."""

    _fields_ = [("track", c_uint32 * 4), ("recovery", c_uint32 * 4), ("growth", c_uint64 * 9)]


class Record(ctypes.Structure):
    """struct cc_trace_record: an operation that ran in a kernel."""

    _fields_ = [
        ("socket", c_uint64),
        ("operation", c_uint32),
        ("result", c_uint32),
        ("event", Event),
        ("before", Window),
        ("after", Window),
    ]
