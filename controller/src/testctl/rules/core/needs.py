# SPDX-License-Identifier: Apache-2.0
"""What a rule may need of a trace (RuleSpec.needs), and why a trace lacks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from testctl.rules.core.spec import Need
from testctl.rules.core.trace import Trace

_TOO_BIG = ("Icmp.InDestUnreachs", "Icmp6.InPktTooBigs")
"""What a kernel counts where packets were too large for a link: what was sent is then sent again in smaller ones."""


def _start(trace: Trace) -> str:
    return "" if trace.from_syn.any() else "the capture begins within the connection"


def _mtu(trace: Trace) -> str:
    counted = trace.records.snmp(trace.host)
    icmp = [name for name in _TOO_BIG if counted.get(name)]
    text = f"{trace.host} received ICMP, which the records lack, perhaps of a smaller path MTU"
    return f"{text} ({icmp[0]})" if icmp else ""


NEEDS: Mapping[Need, Callable[[Trace], str]] = {
    "start": _start,
    "mtu": _mtu,
    "order": lambda trace: trace.delayed,
    "packets": lambda trace: trace.incomplete,
    "reads": lambda trace: trace.reads_slowly,
    "tcp_events": lambda trace: "" if trace.events else "the host's TCP was not traced (tcp_events)",
}
"""A function for each: why the trace lacks it; "": it has it."""


def lacking(trace: Trace, needs: tuple[Need, ...]) -> str:
    """Why one of these is lacking; "": none is."""
    return next((why for need in needs if (why := NEEDS[need](trace))), "")
