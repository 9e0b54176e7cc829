# SPDX-License-Identifier: Apache-2.0
"""Make, remove and list queueing disciplines, classes and filters; encode their options.

Sizes are bytes, rates bits a second, times nanoseconds.  Sources: include/uapi/linux/
{pkt_sched,pkt_cls,rtnetlink,gen_stats}.h; net/sched/sch_{htb,red,netem,fq}.c of 6.1 and 6.12.
"""

from __future__ import annotations

import errno
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from testctl_agent.network import netlink as nl
from testctl_agent.network import port_qdisc
from testctl_agent.spec.errors import ApplyError

ROOT, CLSACT = 0xFFFFFFFF, 0xFFFFFFF1
CLSACT_HANDLE, INGRESS, EGRESS = 0xFFFF0000, 0xFFFFFFF2, 0xFFFFFFF3

TICK_NS = 64
"""The unit of HTB's bucket (PSCHED_SHIFT 6)."""
_U32_MAX = 2**32 - 1

_TCMSG = struct.Struct("=BxHiIII")
_TCA_KIND, _TCA_OPTIONS, _TCA_XSTATS, _TCA_STATS2 = 1, 2, 4, 7
_NESTED = 0x8000
_STATS_BASIC, _STATS_QUEUE, _STATS_PKT64 = 1, 3, 8
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_RED_PARMS, _RED_STAB, _RED_MAX_P, _RED_FLAGS = 1, 2, 3, 4
_RED_ECN, _RED_NODROP, _RED_ALL_FLAGS = 1, 8, 15
_NETEM_CORR, _NETEM_RATE, _NETEM_RATE64, _NETEM_LATENCY64 = 1, 6, 8, 10
_FQ_LIMIT, _FQ_FLOW_LIMIT, _FQ_PACES, _FQ_ORPHAN_MASK = 1, 2, 5, 10
_FQ_TIMER_SLACK, _FQ_HORIZON, _FQ_HORIZON_DROP = 13, 14, 15
_FQ_CODEL_QUANTUM = 6
_BPF_FD, _BPF_NAME, _BPF_FLAGS, _BPF_ID = 6, 7, 8, 11
_BPF_DIRECT_ACTION = 1
_ETH_HEADER = 14
_PASSING = 0x7E580000
_ETH_P_ALL_BIG_ENDIAN = 0x0300
_LINKLAYER_ETHERNET = 1
_RED_XSTATS = ("early_drops", "limit_drops", "other_drops", "marked")


@dataclass(frozen=True)
class Entry:
    """A qdisc, class or filter as the kernel lists it.  `options` is the raw TCA_OPTIONS."""

    index: int
    handle: int
    parent: int
    info: int
    kind: str
    options: bytes
    stats: dict[str, int]
    extra: dict[str, int]

    def __str__(self) -> str:
        """As errors show it: "htb 1:"."""
        return f"{self.kind} {handle_text(self.handle)}"


def handle_text(handle: int) -> str:
    """A handle as `tc` shows it: "1:", "ffff:fff1"."""
    minor = handle & 0xFFFF
    return f"{handle >> 16:x}:{minor:x}" if minor else f"{handle >> 16:x}:"


def _stats(top: dict[int, bytes], kind: str) -> tuple[dict[str, int], dict[str, int]]:
    inner = nl.parse(top.get(_TCA_STATS2, b""))
    stats: dict[str, int] = {}
    if len(basic := inner.get(_STATS_BASIC, b"")) >= 12:
        stats["bytes"], stats["packets"] = struct.unpack_from("=QI", basic)
    if len(packets := inner.get(_STATS_PKT64, b"")) >= 8:  # since 5.5: the other has 32 bits
        (stats["packets"],) = struct.unpack_from("=Q", packets)
    if len(queue := inner.get(_STATS_QUEUE, b"")) >= 20:
        names = ("qlen", "backlog", "drops", "requeues", "overlimits")
        stats.update(zip(names, struct.unpack_from("=5I", queue), strict=True))
    extra: dict[str, int] = {}
    if kind == "red" and len(shown := top.get(_TCA_XSTATS, b"")) >= 16:
        extra.update(zip(_RED_XSTATS, struct.unpack_from("=4I", shown), strict=True))
    if kind == port_qdisc.KIND:
        extra.update(port_qdisc.parse_counts(top.get(_TCA_XSTATS, b"")))
    return stats, extra


def _list(kind: int, device: str, parent: int = 0) -> list[Entry]:
    index = nl.index(device)
    with nl.Netlink() as netlink:
        answers = netlink.dump(kind, _TCMSG.pack(0, 0, index, 0, parent, 0))
    entries = []
    for answer in answers:
        _, _, at, handle, above, info = _TCMSG.unpack_from(answer)
        if at == index:
            top = nl.parse(answer[_TCMSG.size :])
            name = nl.string(top.get(_TCA_KIND, b""))
            entries.append(Entry(at, handle, above, info, name, top.get(_TCA_OPTIONS, b""), *_stats(top, name)))
    return entries


def qdiscs(device: str) -> list[Entry]:
    """Every qdisc of the device, the root first."""
    return _list(nl.RTM_GETQDISC, device)


def classes(device: str) -> list[Entry]:
    return _list(nl.RTM_GETTCLASS, device)


def filters(device: str, parent: int) -> list[Entry]:
    """The filters below `parent`; only those with a handle (others are mere heads of a list)."""
    return [entry for entry in _list(nl.RTM_GETTFILTER, device, parent) if entry.handle]


def root(device: str) -> Entry | None:
    """The root qdisc somebody set; None when the kernel's default is in place."""
    return next((q for q in qdiscs(device) if q.parent == ROOT and q.handle), None)


def default_follows(device: str, mtu_was: int) -> None:
    """After a change of the device's MTU: a default fq_codel made for the MTU before is made anew, for the present one.

    The kernel does not, but makes one for the present MTU when somebody's qdisc goes: without this, the result depends
    on which of the two is restored first.
    """
    defaults = [q for q in qdiscs(device) if not q.handle]
    if root(device) is None and any(quantum(q) == mtu_was + _ETH_HEADER for q in defaults):
        put_qdisc(device, "pfifo", _PASSING, ROOT)
        delete_qdisc(device, _PASSING, ROOT)


def quantum(entry: Entry) -> int:
    """An fq_codel's bytes a turn; 0 for another qdisc."""
    if entry.kind != "fq_codel":
        return 0
    return int.from_bytes(nl.parse(entry.options).get(_FQ_CODEL_QUANTUM, b""), sys.byteorder)


def counters(device: str) -> list[dict[str, object]]:
    """Every qdisc of the device as a row of counters (the form of counters_before.json)."""
    return [
        {
            "device": device,
            "kind": q.kind,
            "handle": handle_text(q.handle),
            "parent": "root" if q.parent == ROOT else handle_text(q.parent),
            **{name: q.stats.get(name, 0) for name in ("bytes", "packets", "drops", "overlimits")},
            **{name: q.stats.get(name, 0) for name in ("backlog", "qlen", "requeues")},
            "extra": dict(q.extra),
        }
        for q in qdiscs(device)
    ]


Change = tuple[int, int, bytes]
"""A request to the kernel that is yet to be sent: kind, flags, payload."""


def _change(
    kind: int, flags: int, device: str, handle: int, parent: int, name: str = "", options: bytes = b"", info: int = 0
) -> Change:
    payload = _TCMSG.pack(0, 0, nl.index(device), handle, parent, info)
    nested = _NESTED if name == "fq_pie" else 0  # which alone insists on it
    payload += nl.text(_TCA_KIND, name) if name else b""
    return kind, flags, payload + (nl.attr(_TCA_OPTIONS | nested, options) if options else b"")


def make(*changes: Change) -> None:
    """Send them at once: a process that is killed has sent all or none.  Raises NetlinkError, of the first refused."""
    with nl.Netlink() as netlink:
        netlink.together(*changes)


def new_qdisc(device: str, kind: str, handle: int, parent: int, options: bytes = b"") -> Change:
    """The qdisc made, or changed to `options` when it is there."""
    flags = nl.NLM_F_CREATE | nl.NLM_F_REPLACE
    return _change(nl.RTM_NEWQDISC, flags, device, handle, parent, kind, options)


def new_class(device: str, kind: str, handle: int, parent: int, options: bytes) -> Change:
    return _change(nl.RTM_NEWTCLASS, nl.NLM_F_CREATE, device, handle, parent, kind, options)


def put_qdisc(device: str, kind: str, handle: int, parent: int, options: bytes = b"") -> None:
    """Make the qdisc, or change it to `options` when it is there.  Raises NetlinkError."""
    make(new_qdisc(device, kind, handle, parent, options))


def delete_qdisc(device: str, handle: int, parent: int) -> None:
    make(_change(nl.RTM_DELQDISC, 0, device, handle, parent))


def put_clsact(device: str, programs: Sequence[tuple[str, int, int]]) -> None:
    """Make a clsact qdisc with loaded programs that themselves say what becomes of a packet.

    programs  (the filter's name, INGRESS or EGRESS, file descriptor), in the order in which they see a packet
    """
    changes = [new_qdisc(device, "clsact", CLSACT_HANDLE, CLSACT)]
    for priority, (name, parent, program) in enumerate(programs, 1):
        info = (priority << 16) | _ETH_P_ALL_BIG_ENDIAN
        options = nl.u32(_BPF_FD, program) + nl.text(_BPF_NAME, name) + nl.u32(_BPF_FLAGS, _BPF_DIRECT_ACTION)
        flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
        changes.append(_change(nl.RTM_NEWTFILTER, flags, device, 1, parent, "bpf", options, info))
    make(*changes)


def bpf_filter(entry: Entry) -> tuple[str, int]:
    """(name, program id) of a bpf filter."""
    inner = nl.parse(entry.options)
    return nl.string(inner.get(_BPF_NAME, b"")), struct.unpack("=I", inner.get(_BPF_ID, bytes(4)))[0]


def unavailable(kind: str) -> str:
    """Why this kernel can't make a qdisc of a kind; "" when it can.

    Asks for one with two numbers of one byte on the loopback device: the kinds of this project, whose
    numbers have four, refuse that, a kernel that does not have the kind says ENOENT, and nothing is made.
    """
    options = nl.attr(1, bytes(1)) + nl.attr(2, bytes(1))
    try:
        make(_change(nl.RTM_NEWQDISC, nl.NLM_F_CREATE | nl.NLM_F_EXCL, "lo", 0x7FFF0000, ROOT, kind, options))
    except nl.NetlinkError as error:
        return f"this kernel has no {kind} qdisc" if error.errno == errno.ENOENT else ""
    raise ApplyError(f"lo: a {kind} qdisc with unusable options was made")


def bytes_per_second(rate_bps: int) -> int:
    """The kernel counts rates in bytes a second; ValueError for one that is not a multiple of 8 bit/s."""
    if rate_bps % 8 or rate_bps < 8:
        raise ValueError(f"the kernel sets rates in whole bytes a second; got {rate_bps} bit/s")
    return rate_bps // 8


def htb_options() -> bytes:
    """HTB whose unclassified packets go to class 1."""
    return nl.attr(_HTB_INIT, struct.pack("=5I", 3, 10, 1, 0, 0))


def bucket_ticks(burst: int, rate_bps: int) -> int:
    """The time a bucket of `burst` bytes takes to fill, in ticks, rounded up."""
    return -(-burst * 8 * 10**9 // (rate_bps * TICK_NS))


def htb_class_options(rate_bps: int, ticks: int, quantum: int) -> bytes:
    """A class that may send at `rate_bps` and never more (ceil = rate)."""
    rate = bytes_per_second(rate_bps)
    spec = struct.pack("=BBHhHI", 0, _LINKLAYER_ETHERNET, 0, 0, 0, min(rate, _U32_MAX))
    options = nl.attr(_HTB_PARMS, spec + spec + struct.pack("=5I", ticks, ticks, quantum, 0, 0))
    if rate > _U32_MAX:
        options += nl.u64(_HTB_RATE64, rate) + nl.u64(_HTB_CEIL64, rate)
    return options


def parse_htb_class(options: bytes) -> tuple[int, int, int]:
    """(rate in bit/s, bucket in ticks, quantum) of a class."""
    inner = nl.parse(options)
    parms = inner[_HTB_PARMS]
    rate = struct.unpack_from("=8xI", parms)[0]
    if _HTB_RATE64 in inner:
        rate = struct.unpack("=Q", inner[_HTB_RATE64])[0]
    ticks, _, quantum = struct.unpack_from("=3I", parms, 24)
    return rate * 8, ticks, quantum


def bfifo_options(limit: int) -> bytes:
    return struct.pack("=I", limit)


def parse_bfifo(options: bytes) -> int:
    return int(struct.unpack_from("=I", options)[0])


def red_options(limit: int, threshold: int) -> bytes:
    """RED as an exact threshold: CE when the backlog is at least `threshold`, never a drop but at `limit`.

    With Wlog 0 the "average" is the backlog itself; with both thresholds equal there is no
    random range between them; every entry of Stab at 31 makes the average after an idle time 0;
    ECN with NODROP lets packets that can't be marked pass.
    """
    parms = struct.pack("=3I4B", limit, threshold, threshold, 0, 0, 0, 0)
    return (
        nl.attr(_RED_PARMS, parms)
        + nl.attr(_RED_STAB, bytes([31]) * 256)
        + nl.u32(_RED_MAX_P, _U32_MAX)
        + nl.attr(_RED_FLAGS, struct.pack("=II", _RED_ECN | _RED_NODROP, _RED_ALL_FLAGS))
    )


def parse_red(options: bytes) -> tuple[int, int]:
    """(limit, threshold) of a RED that is such an exact threshold; ValueError for any other."""
    inner = nl.parse(options)
    limit, least, most, wlog = struct.unpack_from("=3IB", inner[_RED_PARMS])
    flags = struct.unpack_from("=I", inner.get(_RED_FLAGS, bytes(4)))[0]
    if least != most or wlog != 0 or flags != _RED_ECN | _RED_NODROP:
        raise ValueError(f"a RED with min {least}, max {most}, Wlog {wlog}, flags {flags}")
    return limit, least


def netem_options(rate_bps: int, delay_ns: int, limit: int, note: int) -> bytes:
    """A link: `rate_bps` (0: none), then `delay_ns`; at most `limit` packets in both.

    `note` goes where netem keeps the correlation of its jitter, which has no effect without
    jitter, so it can hold a number that has to be read back.
    """
    rate = bytes_per_second(rate_bps) if rate_bps else 0
    options = struct.pack("=6I", min(delay_ns // TICK_NS, _U32_MAX), limit, 0, 0, 0, 0)
    options += nl.attr(_NETEM_CORR, struct.pack("=3I", note, 0, 0))
    options += nl.attr(_NETEM_RATE, struct.pack("=IiIi", min(rate, _U32_MAX), 0, 0, 0))
    options += nl.u64(_NETEM_RATE64, rate) if rate > _U32_MAX else b""
    return options + nl.attr(_NETEM_LATENCY64, struct.pack("=q", delay_ns))


def parse_netem(options: bytes) -> tuple[int, int, int, int]:
    """(rate in bit/s, delay in ns, limit in packets, note)."""
    limit = struct.unpack_from("=4xI", options)[0]
    inner = nl.parse(options[24:])
    rate = struct.unpack_from("=I", inner.get(_NETEM_RATE, bytes(4)))[0]
    if _NETEM_RATE64 in inner:
        rate = struct.unpack("=Q", inner[_NETEM_RATE64])[0]
    delay = struct.unpack("=q", inner[_NETEM_LATENCY64])[0]
    note = struct.unpack_from("=I", inner.get(_NETEM_CORR, bytes(4)))[0]
    return rate * 8, delay, limit, note


FQ_LIMIT = 10_000_000
"""Packets: more than any test has under way."""
FQ_HORIZON_S = 4294
"""The longest that fits: a packet whose time lies further ahead is sent then."""


def fq_options(*, single_queue: bool = True) -> bytes:
    """fq as nothing but a clock: every packet leaves at its own time, unpaced.

    single_queue  for times that never decrease; where they do, fq sends a packet that comes before the head of its
                  queue at the head's time, so each packet needs a queue of its own, by its hash
    """
    return b"".join(
        nl.u32(what, value)
        for what, value in (
            (_FQ_LIMIT, FQ_LIMIT),
            (_FQ_FLOW_LIMIT, FQ_LIMIT),
            (_FQ_PACES, 0),
            (_FQ_ORPHAN_MASK, 0 if single_queue else _U32_MAX),
            (_FQ_TIMER_SLACK, 0),
            (_FQ_HORIZON, FQ_HORIZON_S * 10**6),
        )
    ) + nl.attr(_FQ_HORIZON_DROP, bytes(1))


def is_clock(options: bytes, *, single_queue: bool = True) -> bool:
    """Whether an fq is the one of fq_options, as far as the kernel shows it."""
    have, want = nl.parse(options), nl.parse(fq_options(single_queue=single_queue))
    return all(have.get(what) == value for what, value in want.items())
