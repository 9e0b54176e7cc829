# SPDX-License-Identifier: Apache-2.0
"""What a rule may need of a trace (RuleSpec.needs), and why a trace lacks it; without what nothing breaks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from testctl.records.schema import ACK, FIN, RST
from testctl.rules.core.ecn import ecn_of
from testctl.rules.core.sacks import in_use, unsplit
from testctl.rules.core.sender import sysctl, timers
from testctl.rules.core.spec import Need, Thing
from testctl.rules.core.trace import Trace

_TOO_BIG = ("Icmp.InDestUnreachs", "Icmp6.InPktTooBigs")
"""What a kernel counts where packets were too large for a link: what was sent is then sent again in smaller ones."""


def _start(trace: Trace) -> str:
    return "" if trace.from_syn.any() else "the capture begins within the connection"


def peer(trace: Trace) -> str:
    """The host at the other end; "": it is not known."""
    requested = trace.records.point.flow(trace.flow)
    return requested.ends[1 - trace.direction] if requested else ""


def too_big(trace: Trace, host: str) -> str:
    """The counter of ICMP that a host received, perhaps of a smaller path MTU; "": it received none."""
    counted = trace.records.snmp(host)
    return next((name for name in _TOO_BIG if counted.get(name)), "")


def _mtu(trace: Trace) -> str:
    icmp = too_big(trace, trace.host)
    text = f"{trace.host} received ICMP, which the records lack, perhaps of a smaller path MTU"
    return f"{text} ({icmp})" if icmp else ""


def _reneges(trace: Trace) -> str:
    other = peer(trace)
    counted = trace.records.snmp(other).get("TcpExt.OfoPruned")
    return f"{other} dropped what it had reported by SACK (TcpExt.OfoPruned)" if counted else ""


def _segments(trace: Trace) -> str:
    if sysctl(trace, "tcp_mtu_probing", 0):
        return "probes of the path's MTU change what a segment is (net.ipv4.tcp_mtu_probing)"
    return "small segments were sent again in one" if trace.board.merged.any() else unsplit(trace)


NEEDS: Mapping[Need, Callable[[Trace], str]] = {
    "start": _start,
    "mtu": _mtu,
    "order": lambda trace: trace.delayed,
    "packets": lambda trace: trace.incomplete or _reneges(trace),
    "reads": lambda trace: trace.reads_slowly,
    "segments": _segments,
    "tcp_events": lambda trace: _reneges(trace) if trace.events else "the host's TCP was not traced (tcp_events)",
}
"""A function for each: why the trace lacks it; "": it has it."""
DOUBTS: Mapping[Need, Callable[[Trace], str]] = {
    "order": lambda trace: trace.backlog,
    "reads": lambda trace: trace.shared,
}
"""Likewise of what only a trace that breaks the rule may lack."""


THINGS: Mapping[Thing, Callable[[Trace], bool]] = {
    "classic_ecn": lambda trace: bool(ecn_of(trace).classic.any()),
    "fin": lambda trace: bool(trace.has(FIN).any()),
    "gap": lambda trace: bool((~trace.out & (trace.end > trace["seq"]) & (trace.end > trace.arrived_to)).any()),
    "repeat": lambda trace: bool(trace.repeated.any()),
    "reset": lambda trace: bool(trace.has(RST).any()),
    "retransmission": lambda trace: bool(trace.board.again.any()),
    "sack": lambda trace: bool(in_use(trace).any()),
    "timer": lambda trace: bool(timers(trace).any()),
    "zero_window": lambda trace: bool((trace.has(ACK) & ~trace.has(RST) & (trace["window"] == 0)).any()),
}
"""A function for each: whether it is there."""


def absent(trace: Trace, things: tuple[Thing, ...]) -> bool:
    """Whether one of these is not there."""
    for thing in things:
        if thing not in trace.made:
            trace.made[thing] = THINGS[thing](trace)
    return not all(trace.made[thing] for thing in things)


def lacking(trace: Trace, needs: tuple[Need, ...], of: Mapping[Need, Callable[[Trace], str]] = NEEDS) -> str:
    """Why one of these is lacking; "": none is."""
    return next((why for need in needs if need in of and (why := of[need](trace))), "")
