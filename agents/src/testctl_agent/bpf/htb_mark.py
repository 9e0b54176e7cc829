# SPDX-License-Identifier: Apache-2.0
"""Attaches the marking programs of htb_mark.c to a device's queue, and detaches them.

All state is in the kernel and is read back from there, with one exception: the socket that counts
leaving packets belongs to this process (`_counting`) and is closed when the process ends.  A process
that does not hold the socket of attached programs attaches them again before it changes anything.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.bpf.libbpf import Object
from testctl_agent.network import netlink, qdisc
from testctl_agent.spec.errors import TestbedError

UNSET = 2**64 - 1
"""A threshold or limit that nothing reaches."""

_NAME = "testctl_htb_mark"
_ETH_P_ALL = 0x0003
_SO_ATTACH_BPF = 50
_QUEUE = struct.Struct("=6Q")
_MAP, _SENT, _LEFT, _RETURNED = "queues", "sent", "left", "returned"

_counting: dict[tuple[int, str], socket.socket] = {}
"""(network namespace, device) -> the socket whose filter counts what leaves."""


@dataclass(frozen=True)
class Queue:
    """The programs' shared map: bytes in the queue now, two settings, counters, and whether data is marked."""

    queued: int
    threshold: int
    limit: int
    drops: int
    marks: int
    marks_data: int


def _key(device: str) -> tuple[int, str]:
    return os.stat("/proc/self/ns/net").st_ino, device


def _map_of(device: str) -> int | None:
    """The open map of the programs on the device; None if they are not attached."""
    if not any(q.kind == "clsact" for q in qdisc.qdiscs(device)):
        return None
    for entry in qdisc.filters(device, qdisc.EGRESS):
        name, program = qdisc.bpf_filter(entry)
        if name == _NAME:
            first, *rest = load.program_maps(program)
            for other in rest:
                os.close(other)
            return first
    return None


def read(device: str) -> Queue | None:
    """The state of the programs on the device; None if they are not attached."""
    queue_map = _map_of(device)
    if queue_map is None:
        return None
    try:
        return Queue(*_QUEUE.unpack(load.read_array(queue_map, _QUEUE.size)))
    finally:
        os.close(queue_map)


def put(device: str, threshold: int, limit: int, *, data: bool) -> None:
    """Attach the programs to the device with these settings, in bytes; they mark data, or ACKs.

    Raises TestbedError, also when the device has a clsact qdisc that testctl did not create.
    """
    if _key(device) not in _counting or read(device) is None:
        remove(device)
        _attach(device, Queue(0, threshold, limit, 0, 0, data))
    else:
        _write(device, threshold=threshold, limit=limit, marks_data=data)


def emptied(device: str) -> None:
    """Reset the byte count after the queue was deleted: its packets never pass the program that counts them out."""
    _write(device, queued=0)


def _write(device: str, **settings: int) -> None:
    queue_map = _map_of(device)
    if queue_map is None:
        raise TestbedError(f"device {device}: the programs that mark are gone")
    try:
        now = Queue(*_QUEUE.unpack(load.read_array(queue_map, _QUEUE.size)))
        load.write_array(queue_map, _QUEUE.pack(*astuple(replace(now, **settings))))
    finally:
        os.close(queue_map)


def remove(device: str) -> None:
    """Detach the programs from the device, if they are attached."""
    if (counting := _counting.pop(_key(device), None)) is not None:
        counting.close()
    queue_map = _map_of(device)
    if queue_map is not None:
        os.close(queue_map)
        qdisc.delete_qdisc(device, qdisc.CLSACT_HANDLE, qdisc.CLSACT)


def _attach(device: str, queue: Queue) -> None:
    if any(q.parent == qdisc.CLSACT for q in qdisc.qdiscs(device)):
        raise TestbedError(f"device {device}: want no clsact or ingress qdisc; got one that testctl did not make")
    loaded = Object(Path(__file__).with_name("htb_mark.o"))
    counting = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        loaded.map(_MAP).update(bytes(4), _QUEUE.pack(*astuple(queue)))
        counting.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_BPF, loaded.program(_LEFT))
        counting.bind((device, _ETH_P_ALL))
        programs = ((qdisc.INGRESS, _RETURNED), (qdisc.EGRESS, _SENT))
        qdisc.put_clsact(device, [(_NAME, parent, loaded.program(program)) for parent, program in programs])
    except (TestbedError, OSError) as error:
        counting.close()
        with suppress(netlink.NetlinkError):
            qdisc.delete_qdisc(device, qdisc.CLSACT_HANDLE, qdisc.CLSACT)
        if isinstance(error, OSError):
            raise TestbedError(f"device {device}: count what leaves: {error.strerror}") from error
        raise
    else:
        _counting[_key(device)] = counting
    finally:
        loaded.close()
