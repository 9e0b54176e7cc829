# SPDX-License-Identifier: Apache-2.0
"""The options of Linux's qdiscs for a port's `aqm` (spec/aqm.py).

Sources: include/uapi/linux/pkt_sched.h; net/sched/sch_{codel,fq_codel,pie,fq_pie,cake,sfq,red}.c of 6.1 to 7.3.
"""

from __future__ import annotations

import math
import struct

from testctl_agent.network import netlink as nl
from testctl_agent.spec.aqm import Aqm

ENDLESS = 10_000_000
"""Packets: more than any test has under way."""
_U32_MAX = 2**32 - 1
_ATTRIBUTES = {
    "codel": {"target": 1, "limit": 2, "interval": 3, "ecn": 4},
    "fq_codel": {"target": 1, "limit": 2, "interval": 3, "ecn": 4, "flows": 5, "quantum": 6, "memory": 9},
    "pie": {"qdelay_ref": 1, "limit": 2, "t_update": 3, "alpha": 4, "beta": 5, "ecn": 6},
    "fq_pie": {
        "limit": 1, "flows": 2, "qdelay_ref": 3, "t_update": 4, "alpha": 5, "beta": 6, "quantum": 7, "memory": 8,
        "mark_ecnth": 9, "ecn": 10,
    },
    "cake": {"rtt": 7, "target": 8, "memory": 10, "split_gso": 17},
}  # fmt: skip
_TIMES = frozenset(("target", "interval", "qdelay_ref", "t_update", "rtt"))
_RED_PARMS, _RED_STAB, _RED_MAX_P = 1, 2, 3
_RED_ECN_ELSE_DROP = 3
"""TC_RED_ECN and TC_RED_HARDDROP: beyond `max` everything is dropped."""
_CELLS, _MOST_HALVINGS = 256, 31
_SFQ_DEPTH = 127
"""Packets of a flow; the most that Linux's SFQ has."""


def options(aqm: Aqm, rate_bps: int, packets: int, largest: int) -> bytes:
    """TCA_OPTIONS of the qdisc that has the name of the kind.

    packets   that may wait there at most; 0: no limit
    largest   bytes of a packet of the MTU
    """
    if aqm.kind == "red":
        return _red(aqm, rate_bps, largest)
    if aqm.kind == "sfq":
        most = aqm["flows"] * _SFQ_DEPTH
        v0 = struct.pack("=IiIII", aqm["quantum"], 0, min(packets or most, most), 1024, aqm["flows"])
        return v0 + struct.pack("=II", _SFQ_DEPTH, 0).ljust(44, b"\0")
    values = dict(zip(aqm.names, aqm.kernel_values, strict=True))
    values = {name: value // 1000 if name in _TIMES else value for name, value in values.items()}
    values |= {"limit": packets or ENDLESS, "memory": _U32_MAX >> 1, "split_gso": 0}
    if aqm.kind == "cake":
        values["target"] = max(values["rtt"] // 20, 1)
    attributes = _ATTRIBUTES[aqm.kind]
    return b"".join(nl.u32(number, values[name]) for name, number in attributes.items())


def _red(aqm: Aqm, rate_bps: int, largest: int) -> bytes:
    """In an idle time the average decays as by the packets of the MTU that could have been sent.

    Linux looks the halvings up in a table of the time in cells of 2^log us.
    """
    log, table = idle_table(aqm["wq"], largest * 8 * 10**6 / rate_bps if rate_bps else 1.0)
    flags = _RED_ECN_ELSE_DROP if aqm["ecn"] else 0
    parms = struct.pack("=3I4B", _U32_MAX, aqm["min"], aqm["max"], aqm["wq"], 0, log, flags)
    most = min(dict(zip(aqm.names, aqm.kernel_values, strict=True))["max_p"], _U32_MAX)
    return nl.attr(_RED_PARMS, parms) + nl.attr(_RED_STAB, table) + nl.u32(_RED_MAX_P, most)


def idle_table(wq: int, packet_us: float) -> tuple[int, bytes]:
    """(log, halvings of the average for each number of cells)"""
    per_us = -math.log2(1 - 2**-wq) / packet_us if wq else _MOST_HALVINGS / packet_us
    log = max(0, math.ceil(math.log2(_MOST_HALVINGS / per_us / (_CELLS - 1))))
    halvings = [min(int((cell << log) * per_us), _MOST_HALVINGS) for cell in range(_CELLS)]
    return log, bytes([*halvings[:-1], _MOST_HALVINGS])
