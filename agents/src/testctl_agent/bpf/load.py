# SPDX-License-Identifier: Apache-2.0
"""Maps of BPF programs that are loaded, and programs of a few instructions, by the bpf(2) system call; objects are
loaded by libbpf.py.

Everything the kernel gives out is a file descriptor, which the caller closes (or holds for as long
as a program is to stay).  Source: include/uapi/linux/bpf.h, union bpf_attr.
"""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass

from testctl_agent.spec.errors import TestbedError

SCHED_CLS = 3

_MAP_CREATE, _LOOKUP, _UPDATE, _PROG_LOAD = 0, 1, 2, 5
_PROG_BY_ID, _MAP_BY_ID, _INFO = 13, 14, 15
_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_ATTR_BYTES = 128
_LOG_BYTES = 1 << 16
_INSTRUCTION_BYTES = 8
_LICENSE = b"GPL\0"
_MAX_MAPS = 256


def _bpf(command: int, attributes: bytes, doing: str) -> tuple[int, bytes]:
    """One system call: (its result, the attributes as the kernel left them)."""
    machine = os.uname().machine
    if machine not in _SYSCALL:
        raise TestbedError(f"bpf(2) on {machine}: want one of {', '.join(_SYSCALL)}")
    held = ctypes.create_string_buffer(attributes.ljust(_ATTR_BYTES, b"\0"), _ATTR_BYTES)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    got = call(
        ctypes.c_long(_SYSCALL[machine]), ctypes.c_long(command), ctypes.byref(held), ctypes.c_ulong(_ATTR_BYTES)
    )
    if got < 0:
        raise TestbedError(f"{doing}: {os.strerror(ctypes.get_errno())}")
    return int(got), held.raw


def _at(buffer: ctypes.Array[ctypes.c_char]) -> int:
    return ctypes.addressof(buffer)


def create_map(kind: int, key_bytes: int, value_bytes: int, entries: int, flags: int = 0) -> int:
    return _bpf(_MAP_CREATE, struct.pack("=5I", kind, key_bytes, value_bytes, entries, flags), "make a BPF map")[0]


def open_map(map_id: int) -> int:
    return _bpf(_MAP_BY_ID, struct.pack("=I", map_id), f"open BPF map {map_id}")[0]


def read_element(map_fd: int, key: bytes, value_bytes: int, flags: int = 0) -> bytes:
    """The value of a key; TestbedError when there is none."""
    held, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value_bytes)
    _bpf(_LOOKUP, struct.pack("=I4xQQQ", map_fd, _at(held), _at(value), flags), "read a BPF map")
    return value.raw


def write_element(map_fd: int, key: bytes, data: bytes, flags: int = 0) -> None:
    held, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(data, len(data))
    _bpf(_UPDATE, struct.pack("=I4xQQQ", map_fd, _at(held), _at(value), flags), "write a BPF map")


def read_array(map_fd: int, value_bytes: int) -> bytes:
    """The first value of an array map."""
    return read_element(map_fd, bytes(4), value_bytes)


def write_array(map_fd: int, data: bytes) -> None:
    """Set the first value of an array map."""
    write_element(map_fd, bytes(4), data)


def load_program(kind: int, name: str, code: bytes) -> int:
    """Hand a program to the kernel's verifier; TestbedError carries the end of its log."""
    held = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(_LICENSE)
    log = ctypes.create_string_buffer(_LOG_BYTES)
    head = struct.pack("=IIQQ", kind, len(code) // _INSTRUCTION_BYTES, _at(held), _at(licence))
    tail = struct.pack("=II16s", 0, 0, name.encode()[:15])
    try:
        return _bpf(_PROG_LOAD, head + struct.pack("=IIQ", 0, 0, 0) + tail, "")[0]
    except TestbedError as first:
        with_log = struct.pack("=IIQ", 1, _LOG_BYTES, _at(log))
        try:
            return _bpf(_PROG_LOAD, head + with_log + tail, "")[0]
        except TestbedError:
            lines = log.value.decode(errors="replace").strip().splitlines()[-4:]
            raise TestbedError(f"load BPF program {name}{first}; {' / '.join(lines) or 'no log'}") from first


def program_maps(program_id: int) -> list[int]:
    """File descriptors of the maps that a loaded program uses."""
    program, _ = _bpf(_PROG_BY_ID, struct.pack("=I", program_id), f"open BPF program {program_id}")
    try:
        ids = ctypes.create_string_buffer(4 * _MAX_MAPS)
        # struct bpf_prog_info: nr_map_ids at 52, map_ids at 56
        info = ctypes.create_string_buffer(struct.pack("=52xIQ", _MAX_MAPS, _at(ids)), 64)
        _bpf(_INFO, struct.pack("=IIQ", program, 64, _at(info)), f"read BPF program {program_id}")
        (count,) = struct.unpack_from("=52xI", info.raw)
        map_ids = struct.unpack_from(f"={min(count, _MAX_MAPS)}I", ids.raw)
    finally:
        os.close(program)
    return [open_map(map_id) for map_id in map_ids]


@dataclass(frozen=True)
class MapInfo:
    """A map as the kernel knows it; a name has at most 15 characters."""

    id: int
    name: str
    value_bytes: int
    entries: int


def map_info(map_fd: int) -> MapInfo:
    info = ctypes.create_string_buffer(40)
    _bpf(_INFO, struct.pack("=IIQ", map_fd, 40, _at(info)), "look at a BPF map")
    _, number, _, value_bytes, entries, _, name = struct.unpack("=6I16s", info.raw)
    return MapInfo(number, name.rstrip(b"\0").decode(), value_bytes, entries)
