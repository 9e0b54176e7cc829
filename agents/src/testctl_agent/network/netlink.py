# SPDX-License-Identifier: Apache-2.0
"""Talk netlink: just enough of it for links, routes, traffic control and (ethtool_netlink.py) NICs.

It is written by hand for what libraries do not have (RED with Wlog 0, netem in nanoseconds, several requests in one
system call), and because importing one takes longer than all requests of a point (docs/adr/0009).  A socket is opened
per use, so every call acts on the network namespace of the calling thread.

Sources: include/uapi/linux/{netlink,rtnetlink,if_link}.h.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Self

from testctl_agent.spec.errors import TestbedError

RTM_GETLINK, RTM_SETLINK = 18, 19
RTM_NEWROUTE, RTM_GETROUTE = 24, 26
RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
RTM_NEWTFILTER, RTM_DELTFILTER, RTM_GETTFILTER = 44, 45, 46

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_SOL_NETLINK, _NETLINK_CAP_ACK, _NETLINK_EXT_ACK = 270, 10, 11
_NLMSGERR_ATTR_MSG, _NLM_F_ACK_TLVS = 1, 0x200
_HEADER = struct.Struct("=IHHII")
_ATTR = struct.Struct("=HH")
_ATTR_TYPE_MASK = 0x3FFF
_RECEIVE_BYTES = 1 << 18

_IFINFO = struct.Struct("=BxHiII")
_IFLA_MTU = 4


class NetlinkError(TestbedError):
    """The kernel refused a request; `errno` is its number, the text its own words."""

    def __init__(self, errno: int, message: str) -> None:
        super().__init__(f"{os.strerror(errno)}: {message}" if message else os.strerror(errno))
        self.errno = errno


def attr(kind: int, data: bytes) -> bytes:
    """One attribute, padded to four bytes."""
    return _ATTR.pack(_ATTR.size + len(data), kind) + data + bytes(-len(data) % 4)


def text(kind: int, value: str) -> bytes:
    """An attribute that holds a C string."""
    return attr(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    return attr(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    return attr(kind, struct.pack("=Q", value))


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes in `data` as (type, payload), in order; the nested flag is removed."""
    at = 0
    while at + _ATTR.size <= len(data):
        length, kind = _ATTR.unpack_from(data, at)
        if length < _ATTR.size:
            return
        yield kind & _ATTR_TYPE_MASK, data[at + _ATTR.size : at + length]
        at += (length + 3) & ~3


def parse(data: bytes) -> dict[int, bytes]:
    """The attributes in `data` by type; of a repeated type the last one."""
    return dict(attributes(data))


def string(data: bytes) -> str:
    return data.rstrip(b"\0").decode(errors="replace")


class Netlink:
    """A socket to one of the kernel's families, by default routing and traffic control (a context manager)."""

    def __init__(self, family: int = socket.NETLINK_ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
        self._socket.bind((0, 0))
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(_SOL_NETLINK, _NETLINK_EXT_ACK, 1)
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def request(self, kind: int, flags: int, payload: bytes) -> list[bytes]:
        """Send one request and wait for the kernel's acknowledgement.

        Returns the payloads of what came before it.  Raises NetlinkError.
        """
        (answers,) = self.together((kind, flags, payload))
        return answers

    def together(self, *requests: tuple[int, int, bytes]) -> list[list[bytes]]:
        """As `request`, of several (kind, flags, payload) that the kernel takes within one system call.

        A process that is killed has sent all of them or none.  Every one is tried, also after one that is refused;
        NetlinkError is of the first.
        """
        first = self._sequence + 1
        self._send(*((kind, flags | NLM_F_REQUEST | NLM_F_ACK, payload) for kind, flags, payload in requests))
        answers: list[list[bytes]] = []
        refused: list[NetlinkError] = []
        for sequence in range(first, first + len(requests)):
            try:
                answers.append(self._answers(sequence))
            except NetlinkError as error:
                refused.append(error)
        if refused:
            raise refused[0]
        return answers

    def dump(self, kind: int, payload: bytes) -> list[bytes]:
        """The payload of every message of a table."""
        self._send((kind, NLM_F_REQUEST | NLM_F_DUMP, payload))
        return self._answers(self._sequence)

    def _send(self, *messages: tuple[int, int, bytes]) -> None:
        data = b""
        for kind, flags, payload in messages:
            self._sequence += 1
            data += _HEADER.pack(_HEADER.size + len(payload), kind, flags, self._sequence, 0) + payload
            data += bytes(-len(data) % 4)
        self._socket.send(data)

    def _answers(self, wanted: int) -> list[bytes]:
        """What the kernel says to the request of a sequence number, up to its acknowledgement."""
        answers: list[bytes] = []
        while True:
            packet = self._socket.recv(_RECEIVE_BYTES)
            at = 0
            while at + _HEADER.size <= len(packet):
                length, got, got_flags, sequence, _ = _HEADER.unpack_from(packet, at)
                body = packet[at + _HEADER.size : at + length]
                at += (length + 3) & ~3
                if sequence != wanted:
                    continue
                if got in (_NLMSG_ERROR, _NLMSG_DONE):
                    _refuse(got, got_flags, body)
                    return answers
                answers.append(body)


def _refuse(kind: int, flags: int, body: bytes) -> None:
    """Raise what an error message (or the end of a dump) says, unless it says 0."""
    code = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
    if code >= 0:
        return
    tail = 4 + _HEADER.size if kind == _NLMSG_ERROR else 4
    message = parse(body[tail:]).get(_NLMSGERR_ATTR_MSG, b"") if flags & _NLM_F_ACK_TLVS else b""
    raise NetlinkError(-code, string(message))


def index(device: str) -> int:
    """The index of a device in this namespace; TestbedError when there is none."""
    try:
        return socket.if_nametoindex(device)
    except OSError as error:
        raise TestbedError(f"device {device}: not in this network namespace") from error


def link(device: str) -> tuple[int, dict[int, bytes]]:
    """The flags and attributes of a device."""
    with Netlink() as netlink:
        (answer,) = netlink.request(RTM_GETLINK, 0, _IFINFO.pack(0, 0, index(device), 0, 0))
    return _IFINFO.unpack_from(answer)[3], parse(answer[_IFINFO.size :])


def mtu(device: str) -> int:
    """The device's MTU in bytes."""
    return int(struct.unpack("=I", link(device)[1][_IFLA_MTU])[0])


def set_mtu(device: str, value: int) -> None:
    with Netlink() as netlink:
        netlink.request(RTM_SETLINK, 0, _IFINFO.pack(0, 0, index(device), 0, 0) + u32(_IFLA_MTU, value))
