# SPDX-License-Identifier: Apache-2.0
"""Packets at a device as fast as the kernel takes them, for benches on the running kernel (root).

The generator is the kernel itself: BPF_PROG_TEST_RUN of an XDP program that passes live frames, which
come up the receive path of a device as if its neighbour had sent them.  No copy from user space and
no wake-up a packet, so that what is measured is what comes after.

Sources: include/uapi/linux/bpf.h; Documentation/bpf/bpf_prog_run.rst; include/uapi/linux/if_link.h.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.network import netlink
from testctl_agent.system import namespace as namespaces

XDP, SCHED_CLS = 6, 3
PASS = bytes.fromhex("b700000002000000 9500000000000000")
"""r0 = XDP_PASS (2, which to tc is TC_ACT_SHOT); exit"""

_TEST_RUN, _LIVE_FRAMES = 10, 2
_BATCH = 64
_SETLINK, _IFLA_XDP, _XDP_FD, _XDP_FLAGS = 19, 43, 1, 3
_IFINFO = struct.Struct("=BxHiII")


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread in another network namespace."""
    with open("/proc/thread-self/ns/net", "rb") as home:
        namespaces.join(namespaces.NAMED / namespace)
        try:
            yield
        finally:
            namespaces.join(Path(f"/proc/self/fd/{home.fileno()}"))


def run(program: int, packet: bytes, repeat: int, ctx: bytes = b"", flags: int = 0) -> tuple[int, int]:
    """One BPF_PROG_TEST_RUN: (what the program returned, ns a run as the kernel measured it)."""
    data, held = ctypes.create_string_buffer(packet, len(packet)), ctypes.create_string_buffer(ctx, max(len(ctx), 1))
    attributes = struct.pack(
        "=IIIIQQIIIIQQIII", program, 0, len(packet), 0, ctypes.addressof(data), 0, repeat, 0, len(ctx), 0,
        ctypes.addressof(held) if ctx else 0, 0, flags, 0, _BATCH if flags else 0,
    )  # fmt: skip
    _, after = load._bpf(_TEST_RUN, attributes, "run a BPF program")
    returned, duration = struct.unpack_from("=4xI", after)[0], struct.unpack_from("=36xI", after)[0]
    return returned, duration


def enable(device: str) -> None:
    """Let frames be injected at a device: it needs an XDP program of its own, one that passes."""
    program = load.load_program(XDP, "pass", PASS)
    inner = netlink.u32(_XDP_FD, program) + netlink.u32(_XDP_FLAGS, 0)
    payload = _IFINFO.pack(0, 0, netlink.index(device), 0, 0) + netlink.attr(_IFLA_XDP | 0x8000, inner)
    with netlink.Netlink() as socket:
        socket.request(_SETLINK, 0, payload)
    os.close(program)


def flood(device: str, packet: bytes, seconds: float) -> tuple[int, float]:
    """Have the packet arrive at the device for so long: (how many did, seconds it took)."""
    program = load.load_program(XDP, "flood", PASS)
    ctx = struct.pack("=6I", 0, len(packet), 0, netlink.index(device), 0, 0)
    sent, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        run(program, packet, 1 << 14, ctx, _LIVE_FRAMES)
        sent += 1 << 14
    took = time.perf_counter() - begin
    os.close(program)
    return sent, took
