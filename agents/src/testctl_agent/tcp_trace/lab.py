# SPDX-License-Identifier: Apache-2.0
"""Reads tcp_event.h's records of this process's network namespace from the lab's kernel."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

LAYOUT = 2
"""TCP_EVENT_LAYOUT of tcp_event.h."""

EVENT_BYTES = 96

LAB_FILE = Path("/proc/net/testctl_tcp_trace")
_HEAD = struct.Struct("<4s3I2Q")  # struct trace_head of lab_tcp_trace.c
_MAGIC = b"TGE1"
_PIECE = 1 << 20


@dataclass(frozen=True)
class Counts:
    """Events in the file, and events lost because the kernel's buffer was full."""

    events: int
    lost: int


class LabTrace:
    """The lab's kernel keeps the events (lab_tcp_trace.c) until they are read at the end."""

    def __init__(self, path: Path = LAB_FILE) -> None:
        self._path = path

    def on(self, on: bool) -> None:
        try:
            self._path.write_text(str(int(on)), encoding="ascii")
        except OSError as error:
            raise TestbedError(f"tcp_events: {self._path} can't be switched: {error.strerror}") from error

    def save(self, out: Path) -> Counts:
        """Write all events to a file.  Raises TestbedError if the layout differs or the last event is incomplete."""
        with self._path.open("rb", buffering=0) as file, out.open("wb") as saved:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size or head[:4] != _MAGIC:
                raise TestbedError(f"tcp_events: {self._path}: want a file that begins {_MAGIC!r}; got {head[:4]!r}")
            _, layout, size, _, events, lost = _HEAD.unpack(head)
            if (layout, size) != (LAYOUT, EVENT_BYTES):
                raise TestbedError(
                    f"tcp_events: {self._path}: want events of layout {LAYOUT}, {EVENT_BYTES} bytes; "
                    f"got layout {layout}, {size} bytes: the lab's kernel is of another version"
                )
            while piece := file.read(_PIECE):
                saved.write(piece)
            if saved.tell() != events * EVENT_BYTES:
                raise TestbedError(f"tcp_events: {self._path}: want {events} events; got {saved.tell()} bytes")
        return Counts(events, lost)
