# SPDX-License-Identifier: Apache-2.0
"""Runs a congestion control of lab/cc in this process: for tests, and to check a kernel's decisions."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_uint32
from pathlib import Path

from testctl_agent.cc.compile import HOST, compiled
from testctl_agent.cc.interface import Event, Operation, Private, Record, Window
from testctl_agent.spec.errors import ProgramError


class Algorithm:
    """The compiled code; one for any number of connections."""

    def __init__(self, source: Path) -> None:
        library = ctypes.CDLL(str(compiled(source, HOST)))
        self.name = bytes((c_char * 16).in_dll(library, "cc_host_name")).split(b"\0")[0].decode()
        got = list((c_uint32 * 4).in_dll(library, "cc_host_bytes"))
        want = [ctypes.sizeof(Event), ctypes.sizeof(Window), ctypes.sizeof(Private), len(Operation)]
        if got != want:
            raise ProgramError(f"{source}: sizes of event, window, memory, operations: want {want}; got {got}")
        self._run = library.cc_host_run
        self._run.restype = c_uint32
        self._run.argtypes = [POINTER(Private), c_uint32, POINTER(Event), POINTER(Window)]

    def run(self, private: Private, operation: Operation, event: Event, window: Window) -> int:
        """Run an operation; changes `private` and `window`, returns the new ssthresh of LOSS and ECN."""
        return int(self._run(private, operation, event, window))


class Connection:
    """A connection's memory and window."""

    def __init__(self, algorithm: Algorithm, cwnd: int = 10, ssthresh: int = 0x7FFFFFFF) -> None:
        self.algorithm = algorithm
        self.private = Private()
        self.window = Window(cwnd, ssthresh, 0)

    def tell(self, operation: Operation, **event: int) -> int:
        """Run an operation on an event; fields of struct cc_event that are not given are 0."""
        return self.algorithm.run(self.private, operation, Event(**event), self.window)


def replay(algorithm: Algorithm, records: list[Record]) -> list[str]:
    """Replay a kernel's events with this process's code; one text for each different decision.

    `records` start with the INIT of each connection; a connection without it is left out.
    """
    connections: dict[int, Private] = {}
    wrong: list[str] = []
    for number, record in enumerate(records):
        operation = Operation(record.operation)
        if operation is Operation.INIT:
            connections[record.socket] = Private()
        private = connections.get(record.socket)
        if private is None:
            continue
        window = Window(record.before.cwnd, record.before.ssthresh, record.before.pacing_Bps)
        result = algorithm.run(private, operation, record.event, window)
        got = (window.cwnd, window.ssthresh, window.pacing_Bps, result)
        kernel = (record.after.cwnd, record.after.ssthresh, record.after.pacing_Bps, record.result)
        if got != kernel:
            wrong.append(f"event {number}, {operation.name}: the kernel decided {kernel}, {algorithm.name} here {got}")
    return wrong
