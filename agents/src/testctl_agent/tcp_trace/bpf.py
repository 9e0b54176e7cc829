# SPDX-License-Identifier: Apache-2.0
"""BPF on a running kernel as a source of tcp_event.h's records, of the network namespace of this process."""

from __future__ import annotations

import functools
import os
import struct
from contextlib import ExitStack
from pathlib import Path

from testctl_agent.bpf.libbpf import Object
from testctl_agent.cc.compile import BPF, built
from testctl_agent.spec.errors import TestctlError
from testctl_agent.system.toolchain import KERNEL_TYPES, kernel_types

SOURCE = Path(__file__).with_name("tcp_trace.c")
_PROGRAMS = ("ack_comes", "leaves", "changes", "ends")
CAP_SYS_ADMIN = 21
_TRACEPOINTS = ("tcp_probe", "net_dev_queue", "tcp_cong_state_set", "tcp_destroy_sock")


def unavailable(root: Path = Path("/")) -> str:
    """What a running kernel lacks for the trace by BPF; "": nothing.  With the permission it is tried once."""
    kernel = f"kernel {os.uname().release}"
    types = kernel_types(root)
    if not types:
        return f"{kernel} has neither the lab's trace of TCP nor BTF (no {root / KERNEL_TYPES})"
    if absent := [name for name in _TRACEPOINTS if f"btf_trace_{name}\0".encode() not in types]:
        return f"{kernel} has no tracepoint {', '.join(absent)}: want Linux 5.18 or later with CONFIG_BPF_EVENTS"
    if not _may():
        return "tracing the running kernel's TCP is not permitted: it wants root, or CAP_SYS_ADMIN"
    return _refused()


def _may() -> bool:
    """Whether this process has CAP_SYS_ADMIN."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    effective = next(line.split()[1] for line in lines if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> CAP_SYS_ADMIN & 1)


@functools.cache
def _refused() -> str:
    """Why the programs can't be compiled or this kernel does not take them; "" when it does."""
    try:
        with BpfTrace():
            return ""
    except TestctlError as error:
        return str(error)


class BpfTrace:
    """tcp_trace.c, loaded and attached; close() detaches it.

    `ring` is the map with the events, for its reader.  Raises ProgramError when it does not compile,
    TestbedError when the kernel does not take it.
    """

    def __init__(self) -> None:
        made = built(SOURCE, SOURCE.stem, BPF, "a trace of TCP")
        with ExitStack() as undo:
            self._object = Object(made)
            undo.callback(self._object.close)
            for program in _PROGRAMS:
                undo.callback(self._object.attach(program).close)
            self._undo = undo.pop_all()
        self.ring = self._object.map("trace_ring")

    def on(self, on: bool) -> None:
        """Record this network namespace's connections, from none lost; or nothing."""
        if on:
            self._object.map("trace_lost").update(bytes(4), bytes(8))
        namespace = os.stat("/proc/self/ns/net").st_ino if on else 0
        self._object.map("trace_namespace").update(bytes(4), struct.pack("=I", namespace))

    def lost(self) -> int:
        (lost,) = struct.unpack("=Q", self._object.map("trace_lost").lookup(bytes(4)) or bytes(8))
        return int(lost)

    def close(self) -> None:
        self._undo.close()

    def __enter__(self) -> BpfTrace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
