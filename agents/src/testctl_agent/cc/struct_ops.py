# SPDX-License-Identifier: Apache-2.0
"""A congestion control of lab/cc registered with the running kernel, as BPF struct_ops."""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import ExitStack
from pathlib import Path

from testctl_agent.bpf.libbpf import Object, Ring, unregister_struct_ops
from testctl_agent.cc.compile import BPF, compiled, name_of
from testctl_agent.cc.interface import Record
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system.toolchain import KERNEL_TYPES, kernel_types

_AVAILABLE = "proc/sys/net/ipv4/tcp_available_congestion_control"


def unavailable(root: Path = Path("/")) -> str:
    """Why this kernel can't run congestion controls as BPF; "" if it can."""
    kernel = f"kernel {os.uname().release}"
    types = kernel_types(root)
    if not types:
        return f"{kernel} has no BTF (no {root / KERNEL_TYPES}): congestion controls as BPF want CONFIG_DEBUG_INFO_BTF"
    if b"bpf_struct_ops_tcp_congestion_ops" not in types:
        return f"{kernel} has no struct_ops for congestion controls: want Linux 5.6 or later with CONFIG_BPF_JIT"
    jit = root / "proc/sys/net/core/bpf_jit_enable"  # exists only in the initial namespace
    if jit.is_file() and jit.read_text(encoding="ascii").strip() == "0":
        return f"{kernel} has its BPF JIT off: struct_ops want net.core.bpf_jit_enable=1"
    return ""


def available() -> list[str]:
    return (Path("/") / _AVAILABLE).read_text(encoding="ascii").split()


def _load(source: Path) -> Object:
    """Compile and load it.  Raises ProgramError, or TestbedError with the verifier's message."""
    name = name_of(source)
    if missing := unavailable():
        raise TestbedError(f"congestion control {name}: {missing}")
    made = compiled(source, BPF)
    try:
        return Object(made)
    except TestbedError as error:
        raise TestbedError(f"congestion control {name} ({source}): {error}") from error


def verify(source: Path) -> None:
    """Load and unload it.  Raises TestbedError with the verifier's message if this kernel refuses it."""
    _load(source).close()


def unregister(name: str) -> None:
    """Unregister what a killed agent left registered.  Raises TestbedError if the name is not registered."""
    if not unregister_struct_ops(name):
        raise TestbedError(f"congestion control {name}: none of that name is registered as BPF")


def register(source: Path) -> None:
    """Register tcp_NAME.c until unregister(), also beyond the end of this process.

    Raises ProgramError, TestbedError.
    """
    loaded = _load(source)
    try:
        loaded.attach_struct_ops(name_of(source)).disown()
    finally:
        loaded.close()


class Registered:
    """tcp_NAME.c, loaded and registered; close() unregisters it (connections that use it keep it).

    The registration outlives a process that is killed: see unregister().

    Raises ProgramError when it does not compile, TestbedError when the kernel does not support it or
    its verifier refuses it.
    """

    def __init__(self, source: Path) -> None:
        self.name = name_of(source)
        if self.name in available():
            raise TestbedError(
                f"{self.name}: this kernel has a congestion control of that name already "
                f"(if a run that was killed left it: python -m testctl_agent.cc unregister {self.name})"
            )
        with ExitStack() as undo:
            self._object = _load(source)
            undo.callback(self._object.close)
            self._ring = Ring(self._object.map("cc_trace"))
            undo.callback(self._ring.close)
            self._link = self._object.attach_struct_ops(self.name)
            undo.pop_all()

    def trace(self, on: bool) -> None:
        """Record every operation of every connection that uses it."""
        self._object.map("cc_trace_on").update(struct.pack("=I", 0), struct.pack("=I", on))

    def records(self) -> list[Record]:
        """The records since the last call.  Raises TestbedError if the ring was full and records were lost."""
        got = [Record.from_buffer_copy(raw[: ctypes.sizeof(Record)]) for raw in self._ring.drain()]
        (lost,) = struct.unpack("=I", self._object.map("cc_trace_lost").lookup(struct.pack("=I", 0)) or bytes(4))
        if lost:
            raise TestbedError(f"{self.name}: {lost} records of its trace are lost: read them more often")
        return got

    def close(self) -> None:
        self._link.close()
        self._ring.close()
        self._object.close()

    def __enter__(self) -> Registered:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
