# SPDX-License-Identifier: Apache-2.0
"""Switch a device's offloads by the SIOCETHTOOL requests that every kernel has.

Sources: include/uapi/linux/{sockios,ethtool}.h.
"""

from __future__ import annotations

import socket
import struct

from testctl_agent.spec.errors import TestbedError

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
_GSTRINGS, _GSSET_INFO, _GFEATURES = 0x1B, 0x37, 0x3A
_FEATURE_NAMES, _NAME_BYTES = 4, 32
_COMMANDS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
"""feature: (get, set); "tso" is every kind of TCP segmentation offload at once."""


def _ioctl(device: str, data: bytearray) -> None:
    """One request: `data` begins with its command and takes the answer."""
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


def feature(device: str, name: str) -> bool:
    """Whether an offload ("tso", "gso" or "gro") is on."""
    data = bytearray(struct.pack("=II", _COMMANDS[name][0], 0))
    _ioctl(device, data)
    return bool(struct.unpack("=II", data)[1])


def set_feature(device: str, name: str, on: bool) -> None:
    """Switch an offload; TestbedError when the device keeps it as it was."""
    _ioctl(device, bytearray(struct.pack("=II", _COMMANDS[name][1], int(on))))
    if feature(device, name) != on:
        raise TestbedError(f"device {device}: {name} stays {'off' if on else 'on'}: the device fixes it")


def driver(device: str) -> str:
    """The name of the device's driver ("veth", "mlx5_core", …)."""
    data = bytearray(struct.pack("=I", _GDRVINFO) + bytes(192))
    _ioctl(device, data)
    return data[4:36].rstrip(b"\0").split(b"\0")[0].decode()


def features(device: str) -> list[str]:
    """The names of all offloads that are on, as `ethtool -k` has them from the kernel, in order."""
    data = bytearray(struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _FEATURE_NAMES, 0))
    _ioctl(device, data)
    mask, count = struct.unpack_from("=QI", data, 8)
    if not mask:
        return []
    names = bytearray(struct.pack("=III", _GSTRINGS, _FEATURE_NAMES, count) + bytes(_NAME_BYTES * count))
    _ioctl(device, names)
    blocks = -(-count // 32)
    bits = bytearray(struct.pack("=II", _GFEATURES, blocks) + bytes(16 * blocks))
    _ioctl(device, bits)
    found = []
    for number in range(count):
        active = struct.unpack_from("=I", bits, 8 + 16 * (number // 32) + 8)[0]
        name = names[12 + _NAME_BYTES * number :][:_NAME_BYTES].split(b"\0")[0].decode(errors="replace")
        if name and active >> (number % 32) & 1:
            found.append(name)
    return sorted(found)
