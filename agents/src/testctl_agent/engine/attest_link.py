# SPDX-License-Identifier: Apache-2.0
"""The facts of one network device, each as text: fact → its reader.

Sources: include/uapi/linux/{if_link,pkt_cls,pkt_sched}.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping

from testctl_agent.engine import attest_ip, attest_nic
from testctl_agent.engine.attest_ip import digest
from testctl_agent.network import ethtool, qdisc
from testctl_agent.network import netlink as nl

_ADDRESS, _MTU, _TXQLEN, _PROMISCUITY, _XDP = 1, 4, 13, 30, 43
_FLAGS = {0x1: "up", 0x2: "broadcast", 0x80: "noarp", 0x100: "promisc", 0x200: "allmulti", 0x1000: "multicast"}
_BPF_NAME, _BPF_TAG = 7, 10
_HTB_INIT, _HTB_DIRECT_PACKETS = 2, 16


def _number(device: str, what: int) -> str:
    return str(struct.unpack("=I", nl.link(device)[1].get(what, bytes(4)))[0])


def _flags(device: str) -> str:
    flags, _ = nl.link(device)
    return " ".join(word for bit, word in _FLAGS.items() if flags & bit) or "none"


def _options(entry: qdisc.Entry) -> bytes:
    """A qdisc's options without counters and ids."""
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
    """Kind, handle, parent and a digest of the options."""
    parent = "root" if entry.parent == qdisc.ROOT else qdisc.handle_text(entry.parent)
    return f"{entry} {parent} {digest(_options(entry))}"


def _all_shown(entries: Iterable[qdisc.Entry]) -> str:
    return "; ".join(sorted(map(_shown, entries))) or "none"


def _classes(device: str) -> str:
    kinds = {entry.kind for entry in qdisc.qdiscs(device)}
    return _all_shown(entry for entry in qdisc.classes(device) if entry.kind == "htb") if "htb" in kinds else "none"


def _filters(device: str) -> str:
    """The ingress and egress filters, if the device has a clsact or ingress qdisc."""
    if not any(entry.kind in ("clsact", "ingress") for entry in qdisc.qdiscs(device)):
        return "none"
    return _all_shown([*qdisc.filters(device, qdisc.INGRESS), *qdisc.filters(device, qdisc.EGRESS)])


READERS: Mapping[str, Callable[[str], str]] = {
    "address": lambda device: nl.link(device)[1].get(_ADDRESS, b"").hex(":"),
    "classes": _classes,
    "filters": _filters,
    "flags": _flags,
    "mtu": lambda device: _number(device, _MTU),
    "offloads": lambda device: " ".join(ethtool.features(device)) or "none",
    "promiscuity": lambda device: _number(device, _PROMISCUITY),
    "qdiscs": lambda device: _all_shown(qdisc.qdiscs(device)),
    "txqueuelen": lambda device: _number(device, _TXQLEN),
    "xdp": lambda device: digest(nl.link(device)[1].get(_XDP, b"")),
    **attest_ip.READERS,
    **attest_nic.READERS,
}
