# SPDX-License-Identifier: Apache-2.0
"""Which instruments recorded a flow."""

from __future__ import annotations

from functools import reduce

from testctl.core import routes
from testctl.core.point import numbered_flows
from testctl.metrics.core.completions import requests_of
from testctl.metrics.core.memo import once
from testctl.metrics.core.spec import INSTRUMENTS
from testctl.metrics.core.view import FlowView, view
from testctl.records import Records


@once
def of_flow(records: Records, flow: str) -> frozenset[str]:
    """The instruments (keys of INSTRUMENTS) that there are of a flow, whether or not they have seen anything of it."""
    seen = view(records, flow)
    # A trace that lacks events is no count of anything.
    events_lost = int(records.outcome.result_of(seen.sender, "tcp_events").get("lost", 0))
    there = {
        "sender": records.recorded(seen.sender, "capture"),
        "receiver": records.recorded(seen.receiver, "capture"),
        "telemetry": flow in _numbered(records) and _telemetry(seen),
        "tcp_info": records.recorded(seen.sender, "tcp_info"),
        "counters": bool(records.snmp(seen.sender)) and bool(records.snmp(seen.receiver)),
        "requests": requests_of(records, flow) is not None,
        "tcp_events": records.recorded(seen.sender, "tcp_events") and not events_lost,
    }
    return frozenset(name for name, so in there.items() if so)


def of_point(records: Records) -> frozenset[str]:
    """The instruments that there are of every flow."""
    return reduce(frozenset.__and__, (of_flow(records, flow) for flow in records.plans_flows), frozenset(INSTRUMENTS))


@once
def counts_alone(records: Records, host: str) -> bool:
    """Whether the kernel of a host counted no TCP segment that its capture of the point's flows lacks."""
    where, names = records.codes("where")
    if host not in names:
        return False
    arrived = int((~records.column("out") & (where == names.index(host))).sum())
    return records.snmp(host).get("Tcp.InSegs", -1) == arrived


@once
def timers_alone(records: Records, host: str) -> bool:
    """Likewise, where no timer of it was for a flow that it receives: for what asks for data, or a FIN."""
    received = (seen.acks_out for name in records.flows if (seen := view(records, name)).receiver == host)
    timed = any(len(sent) and bool((sent["length"] > 0).any() or sent["retrans"].any()) for sent in received)
    return not timed and counts_alone(records, host)


@once
def _numbered(records: Records) -> frozenset[str]:
    """The flows whose connections get a number in the switches."""
    return frozenset(flow.name for flow in numbered_flows(records.point.flows))


def _telemetry(seen: FlowView) -> bool:
    """Whether every switch of the way has it; of a topology that is not known: whether any has."""
    switches = list(routes.switches(seen.records.point, seen.requested, back=seen.direction == 1))
    if not switches:
        return bool(seen.records.switches) and not seen.records.point.topology.links
    return all(seen.records.recorded(switch, "telemetry") for switch in switches)
