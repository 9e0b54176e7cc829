# SPDX-License-Identifier: Apache-2.0
"""A device's driver, and its offloads.

Sources: include/uapi/linux/{sockios,ethtool}.h, net/ethtool/common.c (the names of offloads).
"""

from __future__ import annotations

import socket
import struct

from testctl_agent.network import ethtool_netlink as nic
from testctl_agent.spec.errors import TestbedError

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
GRO, GSO, LRO = "rx-gro", "tx-generic-segmentation", "rx-lro"
_SEGMENTATION = ("tx-tcp-segmentation", "tx-tcp6-segmentation")
"""TSO is these two.  The others (tx-tcp-mangleid-segmentation, …) say what it may do, and nothing without them."""


def _ioctl(device: str, data: bytearray) -> None:
    """One request, which every kernel has: `data` begins with its command and takes the answer."""
    import ctypes
    import fcntl

    held = (ctypes.c_char * len(data)).from_buffer(data)
    request = struct.pack("=16sQ16x", device.encode()[:15], ctypes.addressof(held))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
        except OSError as error:
            raise TestbedError(f"device {device}: ethtool request {data[0]:#x}: {error.strerror}") from error
        finally:
            del held


def driver(device: str) -> str:
    """The name of the device's driver ("veth", "mlx5_core", …)."""
    data = bytearray(struct.pack("=I", _GDRVINFO) + bytes(192))
    _ioctl(device, data)
    return data[4:36].rstrip(b"\0").split(b"\0")[0].decode()


def feature(device: str, name: str) -> bool:
    """Whether an offload is on, by the kernel's name of it."""
    return nic.features(device)[name].on


def set_feature(device: str, name: str, on: bool) -> None:
    """Switch an offload; TestbedError when the device keeps it as it was."""
    nic.set_features(device, {name: on})


def features(device: str) -> list[str]:
    """The names of all offloads that are on, as `ethtool -k` has them from the kernel, in order."""
    return sorted(name for name, state in nic.features(device).items() if state.on)


def segmentation(device: str) -> dict[str, bool]:
    """The kinds of TSO and whether each is on: those that the device can switch, or all where it can switch none."""
    known = nic.features(device)
    kinds = {name: known[name] for name in _SEGMENTATION if name in known}
    any_free = any(kind.can_change for kind in kinds.values())
    return {name: kind.on for name, kind in kinds.items() if kind.can_change or not any_free}
