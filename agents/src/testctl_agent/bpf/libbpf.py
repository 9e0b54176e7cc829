# SPDX-License-Identifier: Apache-2.0
"""libbpf by ctypes: open and load an object, read and write its maps, attach its programs.

Needs libbpf.so.1 (Debian: libbpf1), and no BTF of the kernel.  Every failure is a TestbedError; a
load error contains the last messages of libbpf and of the kernel's verifier.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Iterator, Mapping
from ctypes import POINTER, c_char_p, c_int, c_long, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from pathlib import Path

from testctl_agent.spec.errors import TestbedError

_PERCPU = {5, 6, 10}
"""BPF_MAP_TYPE_PERCPU_HASH, _PERCPU_ARRAY, _LRU_PERCPU_HASH."""

_LAST_LINES = 12
_LOG_BYTES = 4096


_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)
_log: list[str] = []


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError as error:
        raise TestbedError(f"libbpf.so.1 can't be loaded (Debian: apt install libbpf1): {error}") from error
    libc = ctypes.CDLL(None)
    libc.vsnprintf.argtypes = [c_char_p, c_size_t, c_char_p, c_void_p]

    def hear(level: int, text: bytes, arguments: int) -> int:
        if level < 2:  # not LIBBPF_DEBUG
            held = ctypes.create_string_buffer(1 << 20)
            libc.vsnprintf(held, len(held), text, arguments)
            _log.append(held.value.decode(errors="replace"))
        return 0

    library.libbpf_set_print.argtypes = [_PRINT]
    listen = _PRINT(hear)
    library.libbpf_set_print(listen)
    library._listen = listen  # type: ignore[attr-defined]  # it is called as long as the library is there
    types: dict[str, tuple[type | None, list[type]]] = {
        "bpf_object__open_file": (c_void_p, [c_char_p, c_void_p]),
        "bpf_object__load": (c_int, [c_void_p]),
        "bpf_object__close": (None, [c_void_p]),
        "bpf_object__next_map": (c_void_p, [c_void_p, c_void_p]),
        "bpf_object__find_program_by_name": (c_void_p, [c_void_p, c_char_p]),
        "bpf_program__fd": (c_int, [c_void_p]),
        "bpf_program__attach": (c_void_p, [c_void_p]),
        "bpf_map__name": (c_char_p, [c_void_p]),
        "bpf_map__fd": (c_int, [c_void_p]),
        "bpf_map__type": (c_int, [c_void_p]),
        "bpf_map__key_size": (c_uint, [c_void_p]),
        "bpf_map__value_size": (c_uint, [c_void_p]),
        "bpf_map__max_entries": (c_uint, [c_void_p]),
        "bpf_map__set_max_entries": (c_int, [c_void_p, c_uint]),
        "bpf_map__reuse_fd": (c_int, [c_void_p, c_int]),
        "bpf_object__find_map_by_name": (c_void_p, [c_void_p, c_char_p]),
        "bpf_map__attach_struct_ops": (c_void_p, [c_void_p]),
        "bpf_map__set_initial_value": (c_int, [c_void_p, c_void_p, c_size_t]),
        "bpf_link__destroy": (c_int, [c_void_p]),
        "bpf_link__disconnect": (None, [c_void_p]),
        "bpf_map_get_next_id": (c_int, [c_uint32, POINTER(c_uint32)]),
        "bpf_map_get_fd_by_id": (c_int, [c_uint32]),
        "bpf_obj_get_info_by_fd": (c_int, [c_int, c_void_p, POINTER(c_uint32)]),
        "bpf_map_lookup_elem": (c_int, [c_int, c_void_p, c_void_p]),
        "bpf_map_update_elem": (c_int, [c_int, c_void_p, c_void_p, c_uint64]),
        "bpf_map_delete_elem": (c_int, [c_int, c_void_p]),
        "bpf_map_get_next_key": (c_int, [c_int, c_void_p, c_void_p]),
        "libbpf_num_possible_cpus": (c_int, []),
        "ring_buffer__new": (c_void_p, [c_int, c_void_p, c_void_p, c_void_p]),
        "ring_buffer__consume": (c_int, [c_void_p]),
        "ring_buffer__free": (None, [c_void_p]),
        "libbpf_get_error": (c_long, [c_void_p]),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _why() -> str:
    return os.strerror(ctypes.get_errno())


def possible_cpus() -> int:
    """How many values an element of a per-CPU map has."""
    return int(_library().libbpf_num_possible_cpus())


class Map:
    """A map of a loaded object; keys and values are bytes in the host's order."""

    def __init__(self, name: str, handle: int) -> None:
        library = _library()
        self.name = name
        self.fd: int = library.bpf_map__fd(handle)
        self.key_bytes: int = library.bpf_map__key_size(handle)
        self.value_bytes: int = library.bpf_map__value_size(handle)
        self.entries: int = library.bpf_map__max_entries(handle)
        self._cpus = possible_cpus() if library.bpf_map__type(handle) in _PERCPU else 0

    def _key(self, key: bytes) -> bytes:
        if len(key) != self.key_bytes:
            raise TestbedError(f"BPF map {self.name}: want a key of {self.key_bytes} bytes; got {len(key)}")
        return key

    def lookup(self, key: bytes) -> bytes | None:
        """The value (of a per-CPU map: the values of all CPUs, concatenated); None if there is no such key."""
        size = (self.value_bytes + 7) // 8 * 8 * self._cpus if self._cpus else self.value_bytes
        value = ctypes.create_string_buffer(size)
        if _library().bpf_map_lookup_elem(self.fd, self._key(key), value):
            if ctypes.get_errno() == errno.ENOENT:
                return None
            raise TestbedError(f"BPF map {self.name}: can't be read: {_why()}")
        return value.raw

    def percpu(self, key: bytes) -> list[bytes]:
        """Each CPU's value of a per-CPU map."""
        raw = self.lookup(key) or b""
        stride = (self.value_bytes + 7) // 8 * 8
        return [raw[at : at + self.value_bytes] for at in range(0, len(raw), stride)]

    def update(self, key: bytes, value: bytes) -> None:
        """Set or add; TestbedError when the map is full.  In a per-CPU map, every CPU gets `value`."""
        if len(value) != self.value_bytes:
            raise TestbedError(f"BPF map {self.name}: want a value of {self.value_bytes} bytes; got {len(value)}")
        if self._cpus:
            value = value.ljust((self.value_bytes + 7) // 8 * 8, b"\0") * self._cpus
        if _library().bpf_map_update_elem(self.fd, self._key(key), value, 0):
            if ctypes.get_errno() == errno.E2BIG:
                raise TestbedError(f"BPF map {self.name}: full: {self.entries} entries")
            raise TestbedError(f"BPF map {self.name}: can't be written: {_why()}")

    def delete(self, key: bytes) -> bool:
        """Delete a key; returns False if there was no such key."""
        if _library().bpf_map_delete_elem(self.fd, self._key(key)):
            if ctypes.get_errno() == errno.ENOENT:
                return False
            raise TestbedError(f"BPF map {self.name}: can't be written: {_why()}")
        return True

    def keys(self) -> Iterator[bytes]:
        last: bytes | None = None
        while True:
            key = ctypes.create_string_buffer(self.key_bytes)
            if _library().bpf_map_get_next_key(self.fd, last, key):
                return
            last = key.raw
            yield last


class Ring:
    """Reader of a ring buffer."""

    def __init__(self, ring: Map) -> None:
        self._got: list[bytes] = []
        kind = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)

        def take(_context: int, data: int, size: int) -> int:
            self._got.append(ctypes.string_at(data, size))
            return 0

        self._callback = kind(take)
        self._handle = _library().ring_buffer__new(ring.fd, self._callback, None, None)
        if not self._handle:
            raise TestbedError(f"BPF ring buffer {ring.name}: can't be read: {_why()}")

    def drain(self) -> list[bytes]:
        """All records since the last call."""
        if _library().ring_buffer__consume(self._handle) < 0:
            raise TestbedError(f"BPF ring buffer: can't be read: {_why()}")
        got, self._got[:] = list(self._got), []
        return got

    def close(self) -> None:
        if self._handle:
            _library().ring_buffer__free(self._handle)
            self._handle = None


_STRUCT_OPS = 26
"""BPF_MAP_TYPE_STRUCT_OPS."""


def unregister_struct_ops(name: str) -> bool:
    """Unregister a struct_ops map that an ended process left registered; returns False if the name is unknown."""
    library = _library()
    number = c_uint32(0)
    while library.bpf_map_get_next_id(number, ctypes.byref(number)) == 0:
        fd = library.bpf_map_get_fd_by_id(number)
        if fd < 0:
            continue
        try:
            info = ctypes.create_string_buffer(256)  # struct bpf_map_info: type at 0, name[16] at 24
            size = c_uint32(len(info))
            if library.bpf_obj_get_info_by_fd(fd, info, ctypes.byref(size)):
                continue
            kind = c_uint32.from_buffer(info, 0).value
            if kind != _STRUCT_OPS or info.raw[24:40].split(b"\0")[0].decode() != name[:15]:
                continue
            if library.bpf_map_delete_elem(fd, bytes(4)) == 0:
                return True
        finally:
            os.close(fd)
    return False


class Link:
    """An attached program or map; close() detaches it."""

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle

    def close(self) -> None:
        if self._handle:
            _library().bpf_link__destroy(self._handle)
            self._handle = None

    def disown(self) -> None:
        """Leave it attached, as a killed process would."""
        if self._handle:
            _library().bpf_link__disconnect(self._handle)
            self.close()


class Object:
    """A loaded BPF object: its maps by name, its programs' file descriptors.  close() releases all of it."""

    def __init__(
        self,
        path: Path,
        constants: Mapping[str, bytes] | None = None,
        entries: Mapping[str, int] | None = None,
        shared: Mapping[str, Map] | None = None,
    ) -> None:
        """constants: the bytes of sections that are only read; the verifier takes them as known
        entries: of maps that get another size than the object says, in what their max_entries count
        shared: maps of another object that take the place of this one's of their names
        """
        library = _library()
        _log.clear()
        self._handle = library.bpf_object__open_file(str(path).encode(), None)
        if not self._handle:
            raise TestbedError(f"{path}: can't be opened as a BPF object: {_why()}{_log_end()}")
        for name, value in (constants or {}).items():
            handle = library.bpf_object__find_map_by_name(self._handle, name.encode())
            if not handle or library.bpf_map__set_initial_value(handle, value, len(value)):
                got = f"one of {library.bpf_map__value_size(handle)}" if handle else "none"
                self.close()
                raise TestbedError(f"{path}: want a section {name} of {len(value)} bytes; got {got}")
        for name, count in (entries or {}).items():
            handle = library.bpf_object__find_map_by_name(self._handle, name.encode())
            if not handle or library.bpf_map__set_max_entries(handle, count):
                self.close()
                raise TestbedError(f"{path}: want a map {name} for {count} entries; got {_why() if handle else 'none'}")
        for name, of_other in (shared or {}).items():
            handle = library.bpf_object__find_map_by_name(self._handle, name.encode())
            if not handle or library.bpf_map__reuse_fd(handle, of_other.fd):
                self.close()
                raise TestbedError(f"{path}: want a map {name} to share; got {_why() if handle else 'none'}")
        if library.bpf_object__load(self._handle):
            why = _why()
            self.close()
            raise TestbedError(f"{path}: the kernel refuses it: {why}{_log_end()}")
        self.path = path
        self.maps: dict[str, Map] = {}
        handle = library.bpf_object__next_map(self._handle, None)
        while handle:
            name = library.bpf_map__name(handle).decode()
            self.maps[name] = Map(name, handle)
            handle = library.bpf_object__next_map(self._handle, handle)

    def map(self, name: str) -> Map:
        if name not in self.maps:
            raise TestbedError(f"{self.path}: no BPF map {name}; there are {', '.join(sorted(self.maps))}")
        return self.maps[name]

    def _program(self, name: str) -> int:
        handle = _library().bpf_object__find_program_by_name(self._handle, name.encode())
        if not handle:
            raise TestbedError(f"{self.path}: no BPF program {name}")
        return int(handle)

    def program(self, name: str) -> int:
        """The file descriptor of a program; the object's own, not to be closed."""
        return int(_library().bpf_program__fd(self._program(name)))

    def attach(self, name: str) -> Link:
        """Attach a program to what its section names."""
        link = _library().bpf_program__attach(self._program(name))
        if not link:
            raise TestbedError(f"{self.path}: BPF program {name} can't be attached: {_why()}{_log_end()}")
        return Link(link)

    def attach_struct_ops(self, name: str) -> Link:
        """Register the operations that a struct_ops map holds; EEXIST: the kernel has some of that name."""
        library = _library()
        handle = library.bpf_object__find_map_by_name(self._handle, name.encode())
        if not handle:
            raise TestbedError(f"{self.path}: no struct_ops map {name}")
        link = library.bpf_map__attach_struct_ops(handle)
        if not link:
            if ctypes.get_errno() == errno.EEXIST:
                raise TestbedError(f"{name}: the kernel has one of that name already")
            raise TestbedError(f"{self.path}: the kernel does not take {name}: {_why()}{_log_end()}")
        return Link(link)

    def close(self) -> None:
        if self._handle:
            _library().bpf_object__close(self._handle)
            self._handle = None


def _log_end() -> str:
    lines = [line for text in _log for line in text.strip().splitlines()]
    kept = [line for line in lines if not line.startswith(("processed ", "-- ", "libbpf: failed to load object"))]
    return f": {' / '.join(kept[-_LAST_LINES:])[-_LOG_BYTES:]}" if kept else ""
