# SPDX-License-Identifier: Apache-2.0
"""What a host's kernel counts of all its connections is what their packets show."""

from __future__ import annotations

from collections import Counter

import numpy as np

from testctl.records.schema import ACK, CE, FIN, SYN, Bools
from testctl.rules.core.sender import TICK_NS, rto_min_ns
from testctl.rules.core.spec import NOTHING, Found, RuleSpec, Violation, undecided
from testctl.rules.core.trace import Trace, trace_of
from testctl.rules.core.windows import Events

SPEC = RuleSpec(
    name="kernel-counts",
    must="What a host's kernel counts of its connections (segments sent and sent again, timeouts, D-SACKs, delayed "
    "ACKs, closed windows, marks) is what its packets show.",
    source="RFC 4022; Linux, Documentation/networking/snmp_counter.rst",
    level="Linux",
    needs=("start", "order", "packets"),
    quote="The total number of segments retransmitted; that is, the number of TCP segments transmitted containing one "
    "or more previously transmitted octets.",
    linux="Judged once for each host, with its first flow, in virtual time.",
)
_ECT0 = 2
_ATO_MIN_NS = 40_000_000
_ABOVE, _AGAIN = "TcpExt.TCPDSACKOfoSent", "came again above a gap"
_IPV6 = 14 + 40 + 20
"""Bytes of headers from which a bare ACK is of IPv6, whose packets are counted apart."""


def check(trace: Trace) -> Found:
    counted = trace.records.snmp(trace.host)
    if not trace.exact or not counted:
        return undecided("the kernel's counters are not of these packets alone")
    own = (trace.flow, trace.direction)
    every = [
        (flow.name, end) for flow in trace.records.point.flows for end, at in enumerate(flow.ends) if at == trace.host
    ]
    if every[0] != own:
        return NOTHING
    shown: list[Counter[str]] = []
    arrived = 0
    for flow, end in every:
        whole = trace if (flow, end) == own else trace_of(trace.records, flow, end)
        if not len(whole):
            continue
        if not whole.from_syn.all() or whole.delayed or whole.reads_slowly or whole.incomplete:
            return undecided(f"of {flow} not all is known")
        shown.append(_shown(whole))
        arrived += int((~whole.out).sum())  # a merged packet counts once
    if counted.get("Tcp.InSegs", 0) > arrived:
        return undecided("the host has other connections, such as the one by which iperf3 is controlled")
    known = set.intersection(*map(set, shown)) if shown else set()
    total = {name: sum(numbers[name] for numbers in shown) for name in sorted(known)}
    off = [name for name, count in total.items() if counted.get(name, count) != count]
    if total.get(_ABOVE, 0) < counted.get(_ABOVE, 0) <= total.get(_AGAIN, 0):
        off.remove(_ABOVE)  # an ACK that waits has the last of several
    if counted.get("TcpExt.TCPAbortOnTimeout"):
        off = [name for name in off if name != "TcpExt.TCPTimeouts"]  # the last one sends nothing
    texts = [f"{name} is {counted[name]}, and packets show {total[name]}" for name in off]
    return Found(len(off), tuple(Violation(len(trace) - 1, text) for text in texts))


def _shown(trace: Trace) -> Counter[str]:
    """What the packets of a flow show of these counters."""
    out, segs = trace.out, trace["segs"]
    ack, syn = trace.has(ACK), trace.has(SYN)
    acks = trace.acks & ~syn
    at = np.flatnonzero(acks & (trace.latest(acks) >= 0))
    closed, before = trace["window"][at] == 0, trace["window"][trace.latest(acks)[at]] == 0
    waited = trace["time_ns"] - trace["time_ns"][np.maximum(trace.latest(~out), 0)]
    delayed = out & trace.pure_ack & (waited >= trace.at_once_ns) & (trace["ack"] > trace.acked)
    # The timer had run since the first that was not acknowledged came; an application that reads sends ACKs too.
    since = trace.reached(trace.arrived_to, ~out, trace.acked + 1)
    least = min(_ATO_MIN_NS, rto_min_ns(trace)) - TICK_NS
    delayed &= trace["time_ns"] - trace["time_ns"][np.maximum(since, 0)] >= least
    again = out & syn & (trace.latest(out & syn) >= 0)
    fin = trace.has(FIN)
    over = (trace.latest(out & fin) >= 0) & (trace.latest(~out & fin) >= 0) & (trace.una >= trace.nxt)
    (old_sent, above_sent), (old_came, above_came) = _dsacks(trace, acks), _dsacks(trace, ~out & ack & ~over)
    numbers = {
        "Tcp.RetransSegs": segs[trace.board.again].sum() + again.sum(),
        "TcpExt.TCPOrigDataSent": segs[trace.board.sent & ~trace.board.again & ~syn].sum(),
        "TcpExt.TCPSynRetrans": again.sum(),
        "TcpExt.DelayedACKs": delayed.sum(),
        "TcpExt.TCPToZeroWindowAdv": (closed & ~before).sum(),
        "TcpExt.TCPFromZeroWindowAdv": (before & ~closed).sum(),
        "TcpExt.TCPDSACKOldSent": old_sent,
        _ABOVE: above_sent,
        _AGAIN: (trace.repeated & (trace["seq"] > trace.rcv_nxt)).sum(),
        "TcpExt.TCPDSACKRecv": old_came,
        "TcpExt.TCPDSACKOfoRecv": above_came,
    }
    if (headers := (trace["wire_bytes"] - trace["length"])[trace.pure_ack]).size and headers.min() < _IPV6:
        numbers["IpExt.InCEPkts"] = segs[~out & (trace["ecn"] == CE)].sum()
        numbers["IpExt.InECT0Pkts"] = segs[~out & (trace["ecn"] == _ECT0)].sum()
    if trace.events and not (again & ack).any():  # the trace has no timer of SYN-ACKs
        numbers["TcpExt.TCPTimeouts"] = Events(trace).kind("timeout").sum()
    return Counter({name: int(number) for name, number in numbers.items()})


def _dsacks(trace: Trace, of: Bools) -> tuple[int, int]:
    """(D-SACK blocks of packets of the mask below their ACK number, those within their second block)."""
    rows, start, end = trace.blocks(1, of)
    inner, outer_start, outer_end = trace.blocks(2, of)
    below = start < trace["ack"][rows]
    within = np.isin(rows, inner)
    within &= (start >= trace.sparse(inner, outer_start)[rows]) & (end <= trace.sparse(inner, outer_end)[rows])
    return int(below.sum()), int((within & ~below).sum())
