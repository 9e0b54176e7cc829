# SPDX-License-Identifier: Apache-2.0
"""The commands that make a lab's network, done in this process: a program's start costs a lab more than what it does.

testbeds/network.py says what is made, as the input of `ip -batch` and the words of `ethtool` and `tee`.  Done here are
the lines that it has for hosts and for switches with a program; for others, such as a bridge's, the program is run.
Sources: include/uapi/linux/{if_link,if_addr,neighbour,veth}.h.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from early import libc
from testctl.system.subprocesses import run as run_program
from testctl_agent.network import ethtool_netlink
from testctl_agent.network import netlink as nl
from testctl_agent.system.namespace import CLONE_NEWNET, NAMED, check, join, unshare

_RTM_NEWLINK, _RTM_NEWADDR, _RTM_NEWNEIGH = 16, 20, 28
_ADDRESS, _IFNAME, _LINKINFO, _NET_NS_FD = 1, 3, 18, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFF_UP, _IFF_NOARP, _IFF_PROMISC = 1, 0x80, 0x100
_IFA_F_NODAD = 2
_NUD_PERMANENT = 0x80
_MS_BIND, _MS_REC, _MS_SHARED = 4096, 0x4000, (1 << 20) | 0x4000
_OFFLOADS = {"tso": ("tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
                     "tx-tcp6-segmentation"),
             "gso": ("tx-generic-segmentation",), "gro": ("rx-gro",), "tx": ("tx-checksum-ip-generic",)}  # fmt: skip
"""What ethtool's short names stand for."""


@contextmanager
def _back_again() -> Iterator[None]:
    """Whatever namespace is entered, this process is in its own one afterwards."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        check(libc.setns(own, CLONE_NEWNET), "setns")
        os.close(own)


def run(argv: Sequence[str], stdin: str) -> str:
    """What network.build wants of a command.  Raises TestbedError."""
    match list(argv):
        case ["ip", "-batch", "-"]:
            return _batch(argv, stdin, "")
        case ["ip", "-n", space, "-batch", "-"]:
            return _batch(argv, stdin, space)
        case ["ip", "netns", "exec", space, "tee", *files]:
            with inside(space):
                for file in files:
                    Path(file).write_text(stdin, encoding="ascii")
            return ""
        case ["ip", "netns", "exec", space, "ethtool", "-K", device, *words]:
            with inside(space):
                _set_offloads(device, dict(zip(words[::2], words[1::2], strict=True)))
            return ""
    return run_program(argv, stdin=stdin)


@contextmanager
def inside(space: str) -> Iterator[None]:
    """This process in a namespace by its name; "": where it is."""
    with _back_again():
        if space:
            join(NAMED / space)
        yield


def _batch(argv: Sequence[str], text: str, space: str) -> str:
    """Do all lines, or leave all of them to the program when one is not known here."""
    lines = [line.split() for line in text.splitlines()]
    if not all(_known(words) for words in lines):
        return run_program(argv, stdin=text)
    with inside(space):
        for words in lines:
            _do(words)
    return ""


def _known(words: list[str]) -> bool:
    match words:
        case ["netns", "add", _] | ["link", "set", _, "up"] | ["link", "set", _, "address", _]:
            return True
        case ["link", "add", _, "netns", _, "type", "veth", "peer", "name", _, "netns", _]:
            return True
        case ["address", "add", _, "dev", _] | ["link", "set", "dev", _, "promisc", "on", "up"]:
            return True
        case ["address", "add", _, "dev", _, "nodad"] | ["link", "set", _, "arp", "off"]:
            return True
        case ["neighbour", "replace", _, "lladdr", _, "nud", "permanent", "dev", _]:
            return True
    return False


def _do(words: list[str]) -> None:
    """One line of `ip -batch` that is known."""
    match words:
        case ["netns", "add", name]:
            _add_namespace(name)
        case ["link", "add", device, "netns", space, "type", "veth", "peer", "name", peer, "netns", other]:
            _add_pair((device, space), (peer, other))
        case ["link", "set", "dev", device, "promisc", "on", "up"]:
            _ask(_RTM_NEWLINK, 0, _link(device, _IFF_UP | _IFF_PROMISC))
        case ["link", "set", device, "up"]:
            _ask(_RTM_NEWLINK, 0, _link(device, _IFF_UP))
        case ["link", "set", device, "address", mac]:
            _ask(_RTM_NEWLINK, 0, _link(device, 0) + nl.attr(_ADDRESS, _mac(mac)))
        case ["link", "set", device, "arp", "off"]:
            _ask(_RTM_NEWLINK, 0, _link(device, _IFF_NOARP))
        case ["address", "add", prefix, "dev", device, *nodad]:
            address, _, length = prefix.partition("/")
            flags = _IFA_F_NODAD if nodad else 0
            head = struct.pack("=BBBBi", _family(address), int(length), flags, 0, nl.index(device))
            packed = socket.inet_pton(_family(address), address)
            _ask(_RTM_NEWADDR, nl.NLM_F_CREATE | nl.NLM_F_EXCL, head + nl.attr(2, packed) + nl.attr(1, packed))
        case ["neighbour", "replace", address, "lladdr", mac, "nud", "permanent", "dev", device]:
            head = struct.pack("=BxxxiHBB", _family(address), nl.index(device), _NUD_PERMANENT, 0, 0)
            body = nl.attr(1, socket.inet_pton(_family(address), address)) + nl.attr(2, _mac(mac))
            _ask(_RTM_NEWNEIGH, nl.NLM_F_CREATE | nl.NLM_F_REPLACE, head + body)


def _ask(kind: int, flags: int, payload: bytes) -> None:
    with nl.Netlink() as netlink:
        netlink.request(kind, flags, payload)


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _link(device: str, flags: int) -> bytes:
    """struct ifinfomsg of a device that is there, with these flags on."""
    return struct.pack("=BxHiII", 0, 0, nl.index(device), flags, flags)


def _add_namespace(name: str) -> None:
    """A network namespace with a name, as `ip netns add` makes it."""
    if not NAMED.is_dir():
        NAMED.mkdir(mode=0o755)
        where = bytes(NAMED)
        check(libc.mount(where, where, None, _MS_BIND | _MS_REC, None), f"mount {NAMED}")
        check(libc.mount(None, where, None, _MS_SHARED, None), f"share {NAMED}")
    place = NAMED / name
    place.touch(mode=0o000, exist_ok=False)
    with _back_again():
        unshare(CLONE_NEWNET)
        check(libc.mount(b"/proc/self/ns/net", bytes(place), None, _MS_BIND, None), f"mount {place}")


def _add_pair(one: tuple[str, str], other: tuple[str, str]) -> None:
    """A veth pair, each end (device, namespace)."""
    spaces = [os.open(NAMED / space, os.O_RDONLY | os.O_CLOEXEC) for _, space in (one, other)]
    try:
        first, second = (
            nl.text(_IFNAME, device) + nl.u32(_NET_NS_FD, space)
            for (device, _), space in zip((one, other), spaces, strict=True)
        )
        empty = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        data = nl.attr(_INFO_DATA, nl.attr(_VETH_PEER, empty + second))
        info = nl.attr(_LINKINFO, nl.text(_INFO_KIND, "veth") + data)
        _ask(_RTM_NEWLINK, nl.NLM_F_CREATE | nl.NLM_F_EXCL, empty + first + info)
    finally:
        for space in spaces:
            os.close(space)


def _set_offloads(device: str, wanted: dict[str, str]) -> None:
    there = ethtool_netlink.features(device)
    names = {name: state == "on" for short, state in wanted.items() for name in _OFFLOADS[short]}
    ethtool_netlink.set_features(device, {name: on for name, on in names.items() if there[name].can_change})
