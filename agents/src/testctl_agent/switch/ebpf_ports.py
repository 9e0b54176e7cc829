# SPDX-License-Identifier: Apache-2.0
"""The ports of the eBPF switch as they lie in its maps (struct port of p4c_ebpf/runtime/port_model.h)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from testctl_agent.bpf import load
from testctl_agent.network import netlink, qdisc
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.switch import ebpf_aqm, ingress
from testctl_agent.switch.physical_ports import rps_files

FRONT = "testctl_front"
"""The filter of the testbed's program where it is in front of the user's."""
FILTER = "testctl_switch"
"""The name of the program's filter at the clsact ingress of every port."""

MAX_PORTS = 510
MAX_BYTES = 2**31
"""Limit of a port's buffer: the numbers of the port model hold no more."""

_PORTS, _PORT_OF = "ports", "port_of"
_PORT = struct.Struct("=4xI11Q")
STEADY, CHANGES, REORDERS = range(3)
"""Port.changes; with REORDERS a packet may leave before one that came before it."""
_LOCKED = 4
"""BPF_F_LOCK: everything but the lock, while it is held."""


@dataclass(frozen=True)
class Port:
    """rate in bit/s, delay in ns, buffer and framing in bytes; 0: none.

    changes  whether the link is in the map `links` (ebpf_links.py): STEADY, CHANGES or REORDERS
    """

    ifindex: int = 0
    rate: int = 0
    delay: int = 0
    buffer: int = 0
    framing: int = 0
    since_ns: int = 0
    backlog_nanobits: int = 0
    sent_packets: int = 0
    sent_bytes: int = 0
    dropped_packets: int = 0
    dropped_bytes: int = 0
    changes: int = 0

    @property
    def timed(self) -> bool:
        """Whether packets wait here, for which fq is needed."""
        return bool(self.rate or self.delay or self.changes)


class PortMap:
    """The map `ports`, open as `map_fd` (not owned).  TestbedError when the kernel refuses."""

    def __init__(self, map_fd: int) -> None:
        self._map = map_fd

    def read(self, number: int) -> Port:
        return Port(*_PORT.unpack(load.read_element(self._map, struct.pack("=I", number), _PORT.size, _LOCKED)))

    def write(self, number: int, port: Port) -> None:
        load.write_element(self._map, struct.pack("=I", number), _PORT.pack(*astuple(port)), _LOCKED)

    def change(self, number: int, **values: int) -> None:
        """Set some members and leave the others (a packet that passes in between goes uncounted)."""
        self.write(number, replace(self.read(number), **values))


@contextmanager
def attached(device: str) -> Iterator[Mapping[str, int] | None]:
    """The open maps, by name, of the switch's program on a device; None when it is not there."""
    program = ingress.program(device, FILTER)
    if program is None:
        yield None
        return
    maps = {load.map_info(fd).name: fd for fd in load.program_maps(program)}
    try:
        yield maps
    finally:
        for fd in maps.values():
            os.close(fd)


def counters(device: str) -> list[dict[str, object]]:
    """The port of this device as a row like a qdisc's; none when it is no port of the switch.

    The backlog is as of the last packet's arrival; it is not counted where the link changes.
    """
    with attached(device) as maps:
        if maps is None:
            return []
        index = struct.pack("=I", netlink.index(device))
        (number,) = struct.unpack("=I", load.read_element(maps[_PORT_OF], index, 4))
        port = PortMap(maps[_PORTS]).read(number)
    return [
        {
            "device": device, "kind": "switch_port", "handle": str(number), "parent": "", "bytes": port.sent_bytes,
            "packets": port.sent_packets, "drops": port.dropped_packets, "overlimits": 0, "requeues": 0, "qlen": 0,
            "backlog": -(-port.backlog_nanobits // (8 * 10**9)), "extra": {"dropped_bytes": port.dropped_bytes},
        }
    ]  # fmt: skip


def steer_to_single_cpu(device: str, number: int, root: Path = Path("/")) -> str:
    """Assign all packets of a port to one processor, because the program's registers have no lock.

    Receive packet steering does that for a veth, whose packets come on whatever processor sent them, and for a NIC
    with several queues.  Returns why it can't be had; "" when it is, or there is one processor.
    """
    files = rps_files(device, root)
    processors = os.cpu_count() or 1
    if not files or processors == 1:
        return ""
    above, bit = divmod((number - 1) % processors, 32)
    try:
        for path in files:
            path.write_text(f"{1 << bit:x}" + ",00000000" * above, encoding="ascii")
    except OSError as error:
        return f"{path}: {error.strerror}: packets that come on two processors at once may be counted as one"
    return ""


def clear_steering(device: str, root: Path = Path("/")) -> None:
    """Undo steer_to_single_cpu; a NIC then gets back what it had before (physical_ports.py)."""
    for path in rps_files(device, root):
        with suppress(OSError):  # without permission it was not written before either
            path.write_text("0", encoding="ascii")


def detach(device: str) -> None:
    """Take program and clock off the device, if they are there."""
    if ingress.program(device, FILTER) is not None:
        clear_steering(device)
    ingress.detach(device, FILTER)
    if ebpf_aqm.is_there(device):
        ebpf_aqm.remove(device)
    elif has_clock(device):
        qdisc.delete_qdisc(device, _CLOCK, qdisc.ROOT)


_CLOCK = 0x7E570000
"""The handle of our fq."""


def has_clock(device: str) -> bool:
    """Whether our fq is the root; ApplyError when somebody else's qdisc is."""
    root = qdisc.root(device)
    if root is None:
        return False
    ours = root.kind == "fq" and root.handle == _CLOCK
    if ours and (qdisc.is_clock(root.options) or qdisc.is_clock(root.options, single_queue=False)):
        return True
    raise ApplyError(f"port {device}: want the kernel's default or our own root qdisc; got {root}")


def set_clock(device: str, wanted: bool, *, single_queue: bool = True) -> None:
    """fq below the port while packets wait there; its packets are lost when it is removed.

    single_queue  see qdisc.fq_options; wanted: whether it is to be there
    """
    there = has_clock(device)
    root = qdisc.root(device) if there and wanted else None
    if root and not qdisc.is_clock(root.options, single_queue=single_queue):
        qdisc.delete_qdisc(device, _CLOCK, qdisc.ROOT)
        there = False
    if wanted and not there:
        qdisc.put_qdisc(device, "fq", _CLOCK, qdisc.ROOT, qdisc.fq_options(single_queue=single_queue))
    elif there and not wanted:
        qdisc.delete_qdisc(device, _CLOCK, qdisc.ROOT)


def check_devices(devices: Sequence[str]) -> None:
    """Raises TestbedError: a port that does not exist, twice the same, or too many."""
    if len(devices) > MAX_PORTS or len(set(devices)) != len(devices):
        raise TestbedError(f"switch: want at most {MAX_PORTS} different ports; got {', '.join(devices)}")
    for device in devices:
        netlink.index(device)
