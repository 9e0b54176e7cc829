# SPDX-License-Identifier: Apache-2.0
"""Ask BMv2's Thrift server for what its P4Runtime lacks: the rate and depth of queues, and registers.

Thrift's strict binary protocol over a plain connection, a name prefixed by its service ("simple_switch:",
"standard:").  Sources: thrift-binary-protocol.md; BMv2's simple_switch.thrift and standard.thrift.
BMv2 gives no way to read a queue's rate or depth back.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from testctl_agent.spec.errors import DriverError

TIMEOUT_S = 30.0
_VERSION, _CALL, _REPLY = 0x80010000, 1, 2
_STOP, _I32, _I64, _STRING, _LIST, _STRUCT = 0, 8, 10, 11, 15, 12
_FIXED = {2: 1, 3: 1, 4: 8, 6: 2, _I32: 4, _I64: 8}
"""Bytes of bool, byte, double, i16, i32 and i64."""


def i32(field: int, value: int) -> bytes:
    return struct.pack(">Bhi", _I32, field, value)


def i64(field: int, value: int) -> bytes:
    return struct.pack(">Bhq", _I64, field, value)


def string(field: int, value: str) -> bytes:
    data = value.encode()
    return struct.pack(">Bhi", _STRING, field, len(data)) + data


class Reader:
    """Takes values of the binary protocol off a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def take(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise DriverError("BMv2's Thrift server ended the connection")
        return data

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big", signed=True)

    def value(self, kind: int) -> object:
        """A value of a type: int, bytes, list, or a struct as {field: value}."""
        if kind in _FIXED:
            return self.number(_FIXED[kind])
        if kind == _STRING:
            return self.take(self.number(4))
        if kind == _LIST:
            element = self.number(1)
            return [self.value(element) for _ in range(self.number(4))]
        if kind == _STRUCT:
            return self.struct()
        raise DriverError(f"BMv2's Thrift server: want a type known here; got {kind}")

    def struct(self) -> dict[int, object]:
        found: dict[int, object] = {}
        while (kind := self.number(1)) != _STOP:
            field = self.number(2)
            found[field] = self.value(kind)
        return found


@dataclass(frozen=True)
class SimpleSwitch:
    """The Thrift server at a port of this host.  Every call raises DriverError."""

    port: int
    host: str = "127.0.0.1"

    def set_rate(self, port: int, packets_per_s: int) -> None:
        """Packets a second that leave an egress port; 0: as many as it can."""
        self._call("simple_switch:set_egress_queue_rate", i32(1, port) + i64(2, packets_per_s))

    def set_depth(self, port: int, packets: int) -> None:
        """Packets that wait for an egress port at most."""
        self._call("simple_switch:set_egress_queue_depth", i32(1, port) + i32(2, packets))

    def read_register(self, name: str) -> list[int]:
        found = self._call("standard:bm_register_read_all", i32(1, 0) + string(2, name))
        if not isinstance(found, list):
            raise DriverError(f"BMv2: register {name}: want a list; got {found!r}")
        return found

    def write_register(self, name: str, index: int, value: int) -> None:
        self._call("standard:bm_register_write", i32(1, 0) + string(2, name) + i32(3, index) + i64(4, value))

    def _call(self, name: str, arguments: bytes) -> object:
        """Call a function with its packed arguments: the value it returns, or None."""
        head = struct.pack(">Ii", _VERSION | _CALL, len(name)) + name.encode() + struct.pack(">i", 0)
        try:
            with socket.create_connection((self.host, self.port), TIMEOUT_S) as connection:
                connection.sendall(head + arguments + bytes([_STOP]))
                reader = Reader(connection)
                kind = reader.number(4) & 0xFF
                reader.take(reader.number(4) + 4)
                fields = reader.struct()
        except OSError as error:
            raise DriverError(f"BMv2's Thrift server at {self.host}:{self.port}: {name}: {error}") from error
        if kind != _REPLY or fields.keys() - {0}:
            exception = next((value for key, value in fields.items() if key), fields)
            raise DriverError(f"BMv2: {name} was refused: {exception!r}")
        return fields.get(0)
