# SPDX-License-Identifier: Apache-2.0
"""From the records of a conversation between two hosts to the tuples of a plan, each with what it was inferred from.

Only the packets of hosts are read: no settings of a point, nothing of a switch or of TCP itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from testctl_agent.params.flow.socket import IPV4
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.units import Bytes, Duration, Rate

from testctl.records import Records
from testctl.records.schema import ACK, SYN, Array
from testctl.reproduce.application import Application, applications
from testctl.reproduce.fates import fates_of
from testctl.reproduce.guess import guesses
from testctl.reproduce.port import Link, link_of, roundest
from testctl.reproduce.seen import Seen, seen_of
from testctl.reproduce.tuples import Tuple
from testctl.reproduce.wire import Wire, wire_of

HOSTS = ("sender", "receiver")
"""Of the topology pair."""
KERNELS = ("6.12", "6.1")
_KERNELS = {None: KERNELS, False: KERNELS[:1], True: KERNELS[1:]}
"""Those with the receive window of Seen.old_window."""
_NAME = re.compile(
    r"(?!(true|false|null|yes|no|on|off|y|n|sender|receiver|switch|hosts|switches|flows|all|background[0-9]+)$)"
    r"[a-z][a-z0-9_]{0,14}"
)
"""Flows that keep their names: others might be no names of a plan, its topology's, or not of YAML."""
_EXACT_NS = 500
_MOST_FLOWS = 200


@dataclass(frozen=True)
class Inferred:
    """What packets say of how they came about.

    tuples    of the plan; flows: {name: (first connection, connections)} in the plan's order
    unknown   what they don't say, or what no plan can
    guessed   {name: tuples of flows}: applications that write by times and not by amounts
    """

    wire: Wire
    tuples: tuple[Tuple, ...]
    flows: dict[str, tuple[Application, ...]]
    unknown: tuple[str, ...] = ()
    guessed: Mapping[str, tuple[Tuple, ...]] = field(default_factory=dict)


def infer(records: Records) -> Inferred:
    """Raises PlanError where there is nothing to reproduce."""
    records = of_hosts(records)
    wire = wire_of(records)
    apps = applications(records, wire)
    if not any(app.bytes for app in apps):
        raise PlanError("want connections with data to reproduce; got none")
    unknown: list[str] = []
    links = [link_of(*ways) for ways in (wire.ways, wire.ways[::-1])]
    alone = any(bool((link.dropped | link.marked | link.doubled | (link.late_ns > 0)).any()) for link in links)
    flows = _flows(apps, alone)
    if len(flows) > _MOST_FLOWS:
        raise PlanError(f"want at most {_MOST_FLOWS} connections to reproduce; got {len(flows)}")
    sacks, tsval = records.column("sack1_start"), records.column("tsval")
    seen = seen_of(wire, apps, bool((sacks >= 0).any()), tsval, _first_windows(records))
    tuples = [*_hosts(seen), *_path(wire, links, unknown)]
    fates, why = fates_of(wire, links, flows, unknown)
    if fates:
        tuples.append(Tuple("switch", "fate", (fates,), why))
    families = {flow.name: flow.family for flow in records.point.flows}
    for name, conns in flows.items():
        if (family := families[conns[0].flow]) != IPV4:
            tuples.append(Tuple(name, "family", (str(family),), "its addresses"))
        tuples += _flow(name, conns, unknown)
    return Inferred(wire, tuple(tuples), flows, tuple(unknown), guesses(flows))


def of_hosts(records: Records) -> Records:
    """The same with the packets that hosts captured alone, without a switch's telemetry; times are after the first."""
    hosts = {host for flow in records.point.flows for host in flow.ends}
    there = pc.is_in(records.packets.column("where").cast(pa.string()), pa.array(sorted(hosts)))
    packets = records.packets.filter(there).combine_chunks()
    at, time_ns = packets.schema.get_field_index("time_ns"), packets.column("time_ns")
    begun = pc.subtract(time_ns, pc.min(time_ns))  # a clock that is behind has times below 0, which mean lost in Way
    packets = packets.set_column(at, packets.schema.field(at), begun)
    return Records(packets, records.tcp_info.slice(0, 0), {}, records.outcome, records.point)


def _first_windows(records: Records) -> Array:
    """The window of the first ACK of data of each connection."""
    length, flags = records.column("length"), records.column("flags")
    answers = (length == 0) & (records.column("ack") > 0) & ((flags & (SYN | ACK)) == ACK)
    rows = np.flatnonzero(answers)
    flow = records.codes("flow")[0].astype(np.int64)
    key = flow[rows] * (1 << 32) + records.column("conn")[rows]
    return np.asarray(records.column("window")[rows[np.unique(key, return_index=True)[1]]])


def _flows(apps: Sequence[Application], alone: bool) -> dict[str, tuple[Application, ...]]:
    """Connections as flows: equal ones of a flow are parallel, unless (alone) packets of them are chosen."""
    groups: list[list[Application]] = []
    for app in apps:
        like = None if alone else next((group for group in groups if group[0].like(app) and len(group) < 64), None)
        if like is not None and app.bytes:
            like.append(app)
        elif app.bytes:
            groups.append([app])
    named: dict[str, tuple[Application, ...]] = {}
    for number, group in enumerate(groups, 1):
        names = [group[0].flow, *(f"c{other}" for other in range(number, number + len(groups)))]
        named[next(name for name in names if _NAME.fullmatch(name) and name not in named)] = tuple(group)
    return named


def _hosts(seen: Seen) -> list[Tuple]:
    grows = {None: "not seen", False: "grows with the first data, as since Linux 6.6",
             True: "does not grow with the first data, as before Linux 6.6"}[seen.old_window]  # fmt: skip
    ruled_out = [f"not {', '.join(names)}: {why}" for why, names in _by_why(seen)]
    if seen.kept is not None:
        ruled_out.append(f"{seen.kept:.0%} of what was in flight stayed so after the first loss")
    tuples = [
        Tuple("hosts", "kernel", _KERNELS[seen.old_window], f"the receive window: {grows}"),
        Tuple("hosts", "cc", tuple(seen.ccs), "; ".join(ruled_out) or "any"),
        Tuple("hosts", "tso", ("on",), f"frames above the MSS left a host: {_yes(seen.tso)}"),
        Tuple("hosts", "gro", ("on",), f"frames above the MSS arrived: {_yes(seen.gro)}"),
    ]
    if seen.mtu:
        tuples.append(Tuple("all", "mtu", (str(seen.mtu),), "the largest packets"))
    values = [value for value in seen.ecn if value is not None]
    for host, value in zip(HOSTS, seen.ecn, strict=True):
        if len(set(values)) > 1 and value is not None:
            tuples.append(Tuple(host, "tcp_ecn", (str(value),), "the flags of its SYN or SYN-ACK"))
    if len(set(values)) == 1:
        tuples.append(Tuple("hosts", "tcp_ecn", (str(values[0]),), "the flags of SYN and SYN-ACK"))
    if seen.timestamps is False:
        tuples.append(Tuple("hosts", "tcp_timestamps", ("0",), "no packet has a timestamp"))
    if seen.sack is False:
        tuples.append(Tuple("hosts", "tcp_sack", ("0",), "packets were lost, and no ACK has SACK blocks"))
    return tuples


def _yes(seen: bool) -> str:
    return "seen" if seen else "not seen, and without them on and off look alike"


def _by_why(seen: Seen) -> list[tuple[str, list[str]]]:
    reasons: dict[str, list[str]] = {}
    for name, why in seen.not_cc.items():
        reasons.setdefault(why, []).append(name)
    return list(reasons.items())


def _path(wire: Wire, links: Sequence[Link], unknown: list[str]) -> list[Tuple]:
    tuples: list[Tuple] = []
    delay, why = _delay(wire, links)
    if delay is None:
        unknown.append("the delay: no packet and its answer were captured")
    elif delay:
        tuples.append(Tuple("switch", "delay", (str(Duration(delay)),), why))
    for to, link, way in zip(HOSTS[::-1], links, wire.ways, strict=True):
        port = f"switch:{to}"
        if link.rate_bps:
            text = f"{link.pairs} pairs of packets arrived at its distance"
            text += (
                f"; by it 90 % arrive within {link.misfit_ns} ns" if way.paired else ", or their ACKs: one end alone"
            )
            tuples.append(Tuple(port, "rate", (str(Rate(link.rate_bps)),), text))
        if link.buffer[1]:
            text = (
                f"{link.by_buffer} losses met a queue for which it lies between {link.buffer[0]} and {link.buffer[1]} B"
            )
            tuples.append(Tuple(port, "buffer", (str(Bytes(roundest(*link.buffer))),), text))
        if link.threshold[1]:
            low, high = link.threshold
            text = f"{link.by_threshold} marks met a queue for which it lies between {low} and {high} B"
            tuples.append(Tuple(port, "ecn_threshold", (str(Bytes(roundest(low, high))),), text))
        if way.paired and not link.rate_bps and way.length.sum() > 100_000:
            unknown.append(f"the rate toward the {to}: packets did not wait for each other on the way")
    if not wire.ways[0].paired:
        unknown.append("buffer and marks, and exact losses: one end alone was captured")
    return tuples


def _delay(wire: Wire, links: Sequence[Link]) -> tuple[int | None, str]:
    """(ns one way, why): half the shortest way there and back, by which differences of the clocks cancel out."""
    if links[0].least_ns is not None and links[1].least_ns is not None:
        both = links[0].least_ns + links[1].least_ns
        return max(_near(both // 2), 0), f"half of {both} ns, the shortest way there and back without waiting"
    for way, back in (wire.ways, wire.ways[::-1]):
        syn = way.sent_ns[((way.flags & (SYN | ACK)) == SYN) & (way.sent_ns >= 0)]
        answer = back.got_ns[((back.flags & (SYN | ACK)) == SYN | ACK) & (back.got_ns >= 0)]
        if len(syn) and len(answer):
            return _near(int(answer[0] - syn[0]) // 2), "half the time from SYN to SYN-ACK"
    return None, ""


def _near(ns: int) -> int:
    return roundest(ns - _EXACT_NS, ns + _EXACT_NS) if ns > _EXACT_NS else 0


def _flow(name: str, conns: tuple[Application, ...], unknown: list[str]) -> list[Tuple]:
    app = conns[0]
    tuples = []
    if app.start_ns:
        tuples.append(Tuple(name, "start", (str(Duration(app.start_ns)),), "its SYN"))
    if len(conns) > 1:
        tuples.append(Tuple(name, "parallel", (str(len(conns)),), "connections that began together and do the same"))
    if app.reverse:
        tuples.append(Tuple(name, "reverse", ("on",), "data comes from the host that did not connect"))
    writes = list(app.writes)
    if app.close_ns is not None:
        tuples.append(Tuple(name, "duration", (str(Duration(app.close_ns)),), "its FIN, later than its last data"))
        writes.append((app.close_ns, 1))  # which is not written: the duration ends before
    if len(writes) == 1 and not writes[0][0]:
        tuples.append(Tuple(name, "bytes", (str(Bytes(app.bytes)),), "its highest sequence number"))
    else:
        shown = ",".join(f"{Duration(at)}:{Bytes(size)}" for at, size in writes[:1024])
        tuples.append(Tuple(name, "pattern", (f"schedule {shown}",), "data that followed pauses of the application"))
    if len(writes) > 1024:
        unknown.append(f"{name}: {len(writes) - 1024} more writes of its application than a schedule has")
    if app.other_bytes:
        unknown.append(f"{name}: {app.other_bytes} bytes of the other direction")
    if not app.begun:
        unknown.append(f"{name}: how it began, before the capture did")
    if not app.ended:
        unknown.append(f"{name}: how it ended, after the capture did")
    return tuples
