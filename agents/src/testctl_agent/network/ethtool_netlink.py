# SPDX-License-Identifier: Apache-2.0
"""Reads and sets a NIC over ethtool's generic netlink: rings, queues, coalescing, pause, features.

A group of settings is data: the message that asks, the message that sets, and an attribute for each
value.  A value that the device lacks is missing in its reply, so the reply is the capability as well.

Sources: include/uapi/linux/{genetlink,ethtool_netlink}.h, Documentation/networking/ethtool-netlink.rst.
"""

from __future__ import annotations

import errno
import functools
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from testctl_agent.network import netlink as nl
from testctl_agent.spec.errors import TestbedError

_NETLINK_GENERIC = 16
_NESTED = 0x8000
_GENL = struct.Struct("=BBH")
_GENL_ID_CTRL, _CTRL_GETFAMILY, _CTRL_FAMILY_ID, _CTRL_FAMILY_NAME = 0x10, 3, 1, 2
_VERSION = 1
_HEADER, _HEADER_DEV_INDEX = 1, 1
_FEATURES_GET, _FEATURES_SET = 11, 12
_HW, _WANTED, _ACTIVE, _NOCHANGE = 2, 3, 4, 5
_BITSET_BITS, _BITS_BIT = 3, 1
_BIT_NAME, _BIT_VALUE = 2, 3


@dataclass(frozen=True)
class Group:
    """Settings that one pair of messages reads and writes.

    fields  name -> (attribute, bytes)
    limits  name -> name of the field that holds its greatest value
    """

    name: str
    get: int
    set: int
    fields: Mapping[str, tuple[int, int]]
    limits: Mapping[str, str]


RINGS = Group(
    "rings", 15, 16, {"rx_max": (2, 4), "tx_max": (5, 4), "rx": (6, 4), "tx": (9, 4)}, {"rx": "rx_max", "tx": "tx_max"}
)
CHANNELS = Group(
    "channels", 17, 18,
    {"rx_max": (2, 4), "tx_max": (3, 4), "combined_max": (5, 4), "rx": (6, 4), "tx": (7, 4), "combined": (9, 4)},
    {"rx": "rx_max", "tx": "tx_max", "combined": "combined_max"},
)  # fmt: skip
COALESCE = Group(
    "interrupt coalescing", 19, 20,
    {"rx_usecs": (2, 4), "rx_frames": (3, 4), "tx_usecs": (6, 4), "tx_frames": (7, 4),
     "adaptive_rx": (11, 1), "adaptive_tx": (12, 1)},
    {},
)  # fmt: skip
PAUSE = Group("pause frames", 21, 22, {"autoneg": (2, 1), "rx": (3, 1), "tx": (4, 1)}, {})


def encode(group: Group, values: Mapping[str, int]) -> bytes:
    """The attributes of a request that sets these values."""
    return b"".join(
        nl.attr(kind, value.to_bytes(size, sys.byteorder))
        for name, value in values.items()
        for kind, size in (group.fields[name],)
    )


def decode(group: Group, payload: bytes) -> dict[str, int]:
    """The values in a reply (its generic netlink header included); those that the device lacks are left out."""
    attributes = nl.parse(payload[_GENL.size :])
    return {
        name: int.from_bytes(attributes[kind][:size], sys.byteorder)
        for name, (kind, size) in group.fields.items()
        if len(attributes.get(kind, b"")) >= size
    }


@dataclass(frozen=True)
class Feature:
    """An offload: whether it is on, and whether the device lets it be switched."""

    on: bool
    can_change: bool


def encode_features(wanted: Mapping[str, bool]) -> bytes:
    """The attributes of a request that switches features by the kernel's names, such as rx-lro."""
    bits = b""
    for name, on in wanted.items():
        bit = nl.text(_BIT_NAME, name) + (nl.attr(_BIT_VALUE, b"") if on else b"")
        bits += nl.attr(_BITS_BIT | _NESTED, bit)
    return nl.attr(_WANTED | _NESTED, nl.attr(_BITSET_BITS | _NESTED, bits))


def decode_features(payload: bytes) -> dict[str, Feature]:
    """Every feature of a reply with bitsets by name (its generic netlink header included)."""
    attributes = nl.parse(payload[_GENL.size :])
    hw, fixed, active = (_names(attributes.get(kind, b"")) for kind in (_HW, _NOCHANGE, _ACTIVE))
    known = hw.keys() | fixed.keys() | active.keys()
    return {name: Feature(active.get(name, False), hw.get(name, False) and name not in fixed) for name in known}


def _names(bitset: bytes) -> dict[str, bool]:
    """The bits of a bitset by name, and whether each is set.  A list (no mask) has those that are set alone."""
    parts = nl.parse(bitset)
    is_list = 1 in parts
    names = {}
    for _, data in nl.attributes(parts.get(_BITSET_BITS, b"")):
        bit = nl.parse(data)
        names[nl.string(bit[_BIT_NAME])] = is_list or _BIT_VALUE in bit
    return names


@functools.cache
def _family() -> int:
    """The number of the family "ethtool" until the next boot; TestbedError when the kernel has none."""
    try:
        with nl.Netlink(_NETLINK_GENERIC) as netlink:
            request = _GENL.pack(_CTRL_GETFAMILY, _VERSION, 0) + nl.text(_CTRL_FAMILY_NAME, "ethtool")
            (answer,) = netlink.request(_GENL_ID_CTRL, 0, request)
    except nl.NetlinkError as error:
        raise TestbedError("this kernel has no ethtool netlink (CONFIG_ETHTOOL_NETLINK)") from error
    return int(struct.unpack("=H", nl.parse(answer[_GENL.size :])[_CTRL_FAMILY_ID])[0])


def _ask(device: str, command: int, attributes: bytes = b"") -> list[bytes]:
    with nl.Netlink(_NETLINK_GENERIC) as netlink:
        header = nl.attr(_HEADER | _NESTED, nl.u32(_HEADER_DEV_INDEX, nl.index(device)))
        return netlink.request(_family(), 0, _GENL.pack(command, _VERSION, 0) + header + attributes)


def get(device: str, group: Group) -> dict[str, int]:
    """The values that the device has; {} when it lacks the whole group.  TestbedError for another failure."""
    try:
        answers = _ask(device, group.get)
    except nl.NetlinkError as error:
        if error.errno == errno.EOPNOTSUPP:
            return {}
        raise TestbedError(f"device {device}: {group.name} can't be read: {error}") from error
    return decode(group, answers[0]) if answers else {}


def put(device: str, group: Group, values: Mapping[str, int]) -> None:
    """Set values.  TestbedError with the kernel's message, the present values, and the device's maxima."""
    try:
        _ask(device, group.set, encode(group, values))
    except nl.NetlinkError as error:
        now = get(device, group)
        shown = ", ".join(f"{name} {now[name]}" + _most(group, now, name) for name in values if name in now)
        raise TestbedError(f"{error}; got {shown or 'none'}") from error


def _most(group: Group, now: Mapping[str, int], name: str) -> str:
    most = now.get(group.limits.get(name, ""))
    return "" if most is None else f" (at most {most})"


def features(device: str) -> dict[str, Feature]:
    """Every feature of the device by the kernel's name."""
    answers = _ask(device, _FEATURES_GET)
    return decode_features(answers[0]) if answers else {}


def set_features(device: str, wanted: Mapping[str, bool]) -> None:
    """Switch features; TestbedError when the kernel refuses, or keeps one as it was."""
    _ask(device, _FEATURES_SET, encode_features(wanted))
    now = features(device)
    for name, on in wanted.items():
        if now[name].on != on:
            raise TestbedError(
                f"{name} stays {'off' if on else 'on'}: another setting of the device, or the device, fixes it"
            )
