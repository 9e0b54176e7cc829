# SPDX-License-Identifier: Apache-2.0
"""Run a loaded BPF program on one packet (BPF_PROG_TEST_RUN)."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_int, c_size_t, c_uint32, c_void_p

from testctl_agent.spec.errors import TestbedError

_MAX_BYTES = 1 << 14
"""Of the packet afterwards, which may be another one, that was kept before."""


class _RunOptions(ctypes.Structure):
    """struct bpf_test_run_opts of bpf.h, libbpf 1.0."""

    _fields_ = [
        ("sz", c_size_t),
        ("data_in", c_void_p),
        ("data_out", c_void_p),
        ("data_size_in", c_uint32),
        ("data_size_out", c_uint32),
        ("ctx_in", c_void_p),
        ("ctx_out", c_void_p),
        ("ctx_size_in", c_uint32),
        ("ctx_size_out", c_uint32),
        ("retval", c_uint32),
        ("repeat", c_int),
        ("duration", c_uint32),
        ("flags", c_uint32),
        ("cpu", c_uint32),
        ("batch_size", c_uint32),
    ]


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    library.bpf_prog_test_run_opts.argtypes = [c_int, POINTER(_RunOptions)]
    return library


def run_packet(program: int, packet: bytes, mark: int = 0, repeat: int = 1) -> tuple[int, bytes, int]:
    """Run a program on a packet: what it returned, the packet afterwards, ns per run."""
    held = ctypes.create_string_buffer(packet, len(packet))
    out = ctypes.create_string_buffer(_MAX_BYTES)
    context = ctypes.create_string_buffer(192)  # struct __sk_buff
    ctypes.c_uint32.from_buffer(context, 8).value = mark
    options = _RunOptions(sz=ctypes.sizeof(_RunOptions), data_size_in=len(packet), repeat=repeat)
    options.data_in, options.data_out = ctypes.addressof(held), ctypes.addressof(out)
    options.data_size_out, options.ctx_in, options.ctx_size_in = len(out), ctypes.addressof(context), len(context)
    if _library().bpf_prog_test_run_opts(program, ctypes.byref(options)):
        raise TestbedError(f"BPF_PROG_TEST_RUN of {len(packet)} bytes: {os.strerror(ctypes.get_errno())}")
    return options.retval, out.raw[: options.data_size_out], options.duration
