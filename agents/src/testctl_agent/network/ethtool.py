# SPDX-License-Identifier: Apache-2.0
"""Switch a device's offloads by the SIOCETHTOOL requests that every kernel has.

Sources: include/uapi/linux/{sockios,ethtool}.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Mapping

from testctl_agent.spec.errors import TestbedError

_SIOCETHTOOL = 0x8946
_GDRVINFO = 0x03
_GSTRINGS, _GSSET_INFO, _GFEATURES, _SFEATURES = 0x1B, 0x37, 0x3A, 0x3B
_FEATURE_NAMES, _NAME_BYTES = 4, 32
_COMMANDS = {"gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
"""feature: (get, set)."""
_SEGMENTATION = ("tx-tcp-segmentation", "tx-tcp6-segmentation")
"""TSO is these two.  The others (tx-tcp-mangleid-segmentation, …) say what it may do, and nothing without them."""


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
    """Whether an offload ("gso" or "gro") is on."""
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
    return sorted(name for name, active, _, _ in _features(device) if active)


def _features(device: str) -> Iterator[tuple[str, bool, bool, int]]:
    """Every feature: (name, whether it is on, whether it can be changed, number)."""
    data = bytearray(struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _FEATURE_NAMES, 0))
    _ioctl(device, data)
    mask, count = struct.unpack_from("=QI", data, 8)
    if not mask:
        return
    names = bytearray(struct.pack("=III", _GSTRINGS, _FEATURE_NAMES, count) + bytes(_NAME_BYTES * count))
    _ioctl(device, names)
    blocks = -(-count // 32)
    bits = bytearray(struct.pack("=II", _GFEATURES, blocks) + bytes(16 * blocks))
    _ioctl(device, bits)
    for number in range(count):
        available, _, active, never = struct.unpack_from("=4I", bits, 8 + 16 * (number // 32))
        name = names[12 + _NAME_BYTES * number :][:_NAME_BYTES].split(b"\0")[0].decode(errors="replace")
        if name:
            bit = number % 32
            yield name, bool(active >> bit & 1), bool((available & ~never) >> bit & 1), number


def segmentation(device: str) -> dict[str, bool]:
    """The kinds of TSO and whether each is on: those that the device can switch, or all where it can switch none."""
    kinds = {name: (on, free) for name, on, free, _ in _features(device) if name in _SEGMENTATION}
    any_free = any(free for _, free in kinds.values())
    return {name: on for name, (on, free) in kinds.items() if free or not any_free}


def set_segmentation(device: str, wanted: Mapping[str, bool]) -> None:
    """Switch kinds of TSO; TestbedError when the device keeps one as it was."""
    numbers = {name: number for name, _, _, number in _features(device)}
    blocks = -(-(max(numbers.values(), default=0) + 1) // 32)
    bits = [[0, 0] for _ in range(blocks)]
    for name, on in wanted.items():
        bits[numbers[name] // 32][0] |= 1 << numbers[name] % 32
        bits[numbers[name] // 32][1] |= on << numbers[name] % 32
    _ioctl(device, bytearray(struct.pack("=II", _SFEATURES, blocks) + b"".join(struct.pack("=II", *b) for b in bits)))
    now = segmentation(device)
    for name, on in wanted.items():
        if now[name] != on:
            raise TestbedError(f"device {device}: {name} stays {'off' if on else 'on'}: the device fixes it")
