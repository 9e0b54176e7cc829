# SPDX-License-Identifier: Apache-2.0
"""Ports of the eBPF switch that are NICs, which unlike veths filter by address, merge packets and have several queues.

Promiscuous mode is held by a socket, so that it ends with this process.  Without GRO and LRO the program sees the
packets of the wire: merged ones would be counted, dropped and delayed as one.  What was on, and which processors took
the packets of each queue (ebpf_ports.py sets that), is written to RUN before it is changed, for the next process if
this one is killed; a reboot undoes it all.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testctl_agent.network import ethtool, ethtool_netlink, netlink
from testctl_agent.spec.errors import TestbedError

RUN = Path("/run/testctl/ports")
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISC = 263, 1, 1
_MERGE = {"gro": ethtool.GRO, "lro": ethtool.LRO}


def is_nic(device: str, root: Path = Path("/")) -> bool:
    """Whether a bus has the device behind it."""
    return (root / "sys/class/net" / device / "device").exists()


def queues_of(device: str, root: Path) -> Path:
    return root / "sys/class/net" / device / "queues"


def rps_files(device: str, root: Path) -> list[Path]:
    """Of each queue of a device: the mask of the processors that take its packets; 0 is the one of its interrupt."""
    return sorted(queues_of(device, root).glob("rx-*/rps_cpus"))


class PhysicalPorts:
    """Holds the NICs among the ports until close().  Raises TestbedError."""

    def __init__(self, ports: Sequence[str], run: Path = RUN, root: Path = Path("/")) -> None:
        self._run = run
        self._root = root
        self._sockets: list[socket.socket] = []
        self._nics = [device for device in ports if is_nic(device, root)]
        try:
            for device in self._nics:
                self._sockets.append(_promiscuous(device))
                self._do_not_merge(device)
        except BaseException:
            self.close()
            raise

    def _do_not_merge(self, device: str) -> None:
        note = self._run / device
        on = [
            name
            for name, feature in _MERGE.items()
            if _can_change(device, feature) and ethtool.feature(device, feature)
        ]
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            queues = [f"{path.parent.name} {path.read_text('ascii').strip()}" for path in rps_files(device, self._root)]
            if not note.exists():  # a killed process has left one of what there was before
                note.write_text("\n".join([" ".join(on), *queues]), encoding="ascii")
        except OSError as error:
            raise TestbedError(f"port {device}: {note}: {error.strerror}") from error
        for name in on:
            ethtool.set_feature(device, _MERGE[name], False)

    def close(self) -> None:
        for device in self._nics:
            note = self._run / device
            with suppress(OSError, TestbedError):  # not there yet, or the device is gone
                on, *queues = note.read_text(encoding="ascii").split("\n")
                for name in on.split():
                    ethtool.set_feature(device, _MERGE[name], True)
                for queue, _, processors in (line.partition(" ") for line in queues):
                    path = queues_of(device, self._root) / queue / "rps_cpus"
                    if path.read_text(encoding="ascii").strip() != processors:
                        path.write_text(processors, encoding="ascii")
                note.unlink()
        for held in self._sockets:
            held.close()
        self._sockets.clear()


def _can_change(device: str, feature: str) -> bool:
    if feature == ethtool.GRO:
        return True
    offload = ethtool_netlink.features(device).get(feature)
    return bool(offload and offload.can_change)


def _promiscuous(device: str) -> socket.socket:
    """A socket that receives nothing and keeps a device promiscuous (packet(7), PACKET_MR_PROMISC)."""
    try:
        held = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        held.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, struct.pack("IHH8s", netlink.index(device), _PROMISC, 0, b""))
    except OSError as error:
        raise TestbedError(f"port {device}: can't be made promiscuous: {error.strerror}") from error
    return held
