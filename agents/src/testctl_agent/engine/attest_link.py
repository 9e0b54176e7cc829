# SPDX-License-Identifier: Apache-2.0
"""The facts of one network device, each as text: fact → its reader.

Sources: include/uapi/linux/{if_link,if_addr,rtnetlink,pkt_cls,pkt_sched}.h.
"""

from __future__ import annotations

import hashlib
import socket
import struct
from collections.abc import Callable, Mapping

from testctl_agent import ethtool, qdisc
from testctl_agent import netlink as nl

_IFINFO, _IFADDR, _RTMSG = struct.Struct("=BxHiII"), struct.Struct("=4BI"), struct.Struct("=8BI")
_RTM_GETADDR = 22
_ADDRESS, _MTU, _TXQLEN, _PROMISCUITY, _XDP = 1, 4, 13, 30, 43
_FLAGS = {0x1: "up", 0x2: "broadcast", 0x80: "noarp", 0x100: "promisc", 0x200: "allmulti", 0x1000: "multicast"}
_IFA_LOCAL = 2
_RTA_DST, _RTA_OIF, _RTA_CACHEINFO = 1, 4, 12
_LINK_STATE = 0x11  # RTNH_F_DEAD, RTNH_F_LINKDOWN: the state of the cable
_BPF_NAME, _BPF_TAG = 7, 10
_HTB_INIT, _HTB_DIRECT_PACKETS = 2, 16
_DIGEST_CHARS = 16


def digest(data: bytes) -> str:
    """So much of a SHA-256 as tells two states apart; "-" of nothing."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS] if data else "-"


def _link(device: str) -> tuple[int, dict[int, bytes]]:
    """(flags, attributes) of a device."""
    with nl.Netlink() as netlink:
        (answer,) = netlink.request(nl.RTM_GETLINK, 0, _IFINFO.pack(0, 0, nl.index(device), 0, 0))
    return _IFINFO.unpack_from(answer)[3], nl.parse(answer[_IFINFO.size :])


def _number(device: str, what: int) -> str:
    return str(struct.unpack("=I", _link(device)[1].get(what, bytes(4)))[0])


def _flags(device: str) -> str:
    flags, _ = _link(device)
    return " ".join(word for bit, word in _FLAGS.items() if flags & bit) or "none"


def _mac(device: str) -> str:
    return _link(device)[1].get(_ADDRESS, b"").hex(":")


def _xdp(device: str) -> str:
    return digest(_link(device)[1].get(_XDP, b""))


def _addresses(device: str) -> str:
    """IPv4 addresses with their prefix, in order."""
    index = nl.index(device)
    with nl.Netlink() as netlink:
        answers = netlink.dump(_RTM_GETADDR, _IFADDR.pack(socket.AF_INET, 0, 0, 0, 0))
    found = []
    for answer in answers:
        _, prefix, _, _, at = _IFADDR.unpack_from(answer)
        local = nl.parse(answer[_IFADDR.size :]).get(_IFA_LOCAL)
        if at == index and local:
            found.append(f"{socket.inet_ntoa(local)}/{prefix}")
    return " ".join(sorted(found)) or "none"


def _routes(device: str) -> str:
    """IPv4 routes through the device: destination, table, and a digest of all else (metrics, gateway, …)."""
    index = struct.pack("=I", nl.index(device))
    with nl.Netlink() as netlink:
        answers = netlink.dump(nl.RTM_GETROUTE, _RTMSG.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0))
    found = []
    for answer in answers:
        fields, attributes = _RTMSG.unpack_from(answer), nl.parse(answer[_RTMSG.size :])
        if attributes.get(_RTA_OIF) == index:
            to = socket.inet_ntoa(attributes.get(_RTA_DST, bytes(4)))
            head = _RTMSG.pack(*fields[:8], fields[8] & ~_LINK_STATE)
            rest = [nl.attr(kind, data) for kind, data in sorted(attributes.items()) if kind != _RTA_CACHEINFO]
            found.append(f"{to}/{fields[1]},{fields[4]},{digest(head + b''.join(rest))}")
    return " ".join(sorted(found)) or "none"


def _options(entry: qdisc.Entry) -> bytes:
    """A qdisc's options without what counts or is numbered anew."""
    if entry.kind == "bpf":  # the program's id is another after every load, its tag is not
        inner = nl.parse(entry.options)
        return inner.get(_BPF_NAME, b"") + inner.get(_BPF_TAG, b"")
    if entry.kind != "htb":
        return entry.options
    kept = []
    for kind, data in nl.attributes(entry.options):
        still = data[:_HTB_DIRECT_PACKETS] + data[_HTB_DIRECT_PACKETS + 4 :] if kind == _HTB_INIT else data
        kept.append(nl.attr(kind, still))
    return b"".join(kept)


def _shown(entry: qdisc.Entry) -> str:
    parent = "root" if entry.parent == qdisc.ROOT else qdisc.handle_text(entry.parent)
    return f"{entry.kind} {qdisc.handle_text(entry.handle)} {parent} {digest(_options(entry))}"


def _qdiscs(device: str) -> str:
    """Every qdisc: kind, handle, parent and a digest of its options."""
    return "; ".join(sorted(map(_shown, qdisc.qdiscs(device)))) or "none"


def _classes(device: str) -> str:
    kinds = {entry.kind for entry in qdisc.qdiscs(device)}
    shaped = [entry for entry in qdisc.classes(device) if entry.kind == "htb"] if "htb" in kinds else []
    return "; ".join(sorted(map(_shown, shaped))) or "none"


def _filters(device: str) -> str:
    """The filters where packets come in and go out, if there is a place for them."""
    if not any(entry.kind in ("clsact", "ingress") for entry in qdisc.qdiscs(device)):
        return "none"
    parents = (qdisc.INGRESS, qdisc.EGRESS)
    return "; ".join(sorted(_shown(e) for parent in parents for e in qdisc.filters(device, parent))) or "none"


def _offloads(device: str) -> str:
    return " ".join(ethtool.features(device)) or "none"


READERS: Mapping[str, Callable[[str], str]] = {
    "address": _mac,
    "classes": _classes,
    "filters": _filters,
    "flags": _flags,
    "ipv4": _addresses,
    "mtu": lambda device: _number(device, _MTU),
    "offloads": _offloads,
    "promiscuity": lambda device: _number(device, _PROMISCUITY),
    "qdiscs": _qdiscs,
    "routes": _routes,
    "txqueuelen": lambda device: _number(device, _TXQLEN),
    "xdp": _xdp,
}
