# SPDX-License-Identifier: Apache-2.0
"""Whether the instruments of a point agree: what does not makes its verdict `invalid`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from testctl_agent.spec import workload
from testctl_agent.wire.results import Connection, FlowEnd

from testctl.core.outcome import FlowOutcome
from testctl.metrics.core.available import counts_alone
from testctl.metrics.core.completions import requests_of
from testctl.metrics.core.view import FlowView, Rows, view
from testctl.metrics.counter_mismatches import mismatches
from testctl.metrics.goodput import unique_bytes
from testctl.records import Records

_EXTRA_BYTES = 64  # per connection: what a generator sends beside what it counts (iperf3's cookie)
LATE_NS = 10**6
"""By how much a request may begin after it came, on a connection that nothing else keeps busy."""
_SHARE = 0.02
_FEW = 100
_NO_TCP = [
    *(f"{group}.{field}" for group in ("Udp", "Udp6") for field in ("InDatagrams", "InErrors", "NoPorts")),
    *("Icmp.InMsgs", "Icmp6.InMsgs", "Ip.ReasmReqds", "Ip6.ReasmReqds"),
]
"""Packets of other protocols, and pieces of packets, which records lack."""
_BY_ECN = [f"{group}.In{field}Pkts" for group in ("IpExt", "Ip6") for field in ("NoECT", "ECT1", "ECT0", "CE")]


def instruments_agree(records: Records) -> list[str]:
    """Reasons, each a sentence with the entity or flow, why the records can't be trusted; [] if they can."""
    reasons = [
        f"{entity}: the capture dropped {dropped} packets"
        for entity, collected in sorted(records.outcome.collected.items())
        if (dropped := collected.get("capture", {}).get("dropped"))
    ]
    for name in records.flows:
        seen = view(records, name)
        result = records.outcome.flows.get(name, FlowOutcome())
        reasons += [
            f"flow {name}: {why}" for why in (*_generator(seen, result), *_unseen(seen), *_requests(seen, result))
        ]
    traced = [f"{mismatch.host}: {mismatch.why}" for mismatch in mismatches(records) if mismatch.traced]
    return [*reasons, *_counters(records), *_retransmissions(records), *traced]


def _generator(seen: FlowView, result: FlowOutcome) -> Iterator[str]:
    for end in result.ends:
        reports: list[FlowEnd | Connection] = [end, *end.connections]
        for report in reports:
            if report.verified is False:
                where = f" at byte {report.bad_offset}" if report.bad_offset is not None else ""
                yield f"the receiver read other bytes than were sent{where}"
            if report.error and not end.failures:
                yield f"its generator failed: {report.error}"
    by_role = {end.role: end.bytes for end in result.ends}
    sent, received = by_role.get("sender"), by_role.get("receiver")
    slack = _EXTRA_BYTES * max(len(np.unique(seen.sent["conn"])), len(np.unique(seen.arrived["conn"])), 1)
    if sent is not None and len(seen.sent) and unique_bytes(seen.sent) > sent + slack:
        yield f"{seen.sender}'s capture has {unique_bytes(seen.sent)} bytes of payload; its generator wrote {sent}"
    if received is not None:
        for where, rows in ((seen.sender, seen.sent), (seen.receiver, seen.arrived)):
            if len(rows) and unique_bytes(rows) < received:
                yield f"{where}'s capture has {unique_bytes(rows)} bytes of payload; {seen.receiver} read {received}"
        if received and not len(seen.sent) and not len(seen.arrived):
            ends = [host for host in (seen.sender, seen.receiver) if seen.records.recorded(host, "capture")]
            if ends:
                yield f"no capture ({', '.join(ends)}) has a packet of it; {seen.receiver} read {received} bytes"


def _requests(seen: FlowView, result: FlowOutcome) -> Iterator[str]:
    """Whether the application made every request at its time, to its end, with all its bytes."""
    columns = requests_of(seen.records, seen.name)
    if columns is None or result.failures:
        return
    count = len(columns["request"])
    ended = int((columns["end_ns"] >= 0).sum())
    if ended < count:
        yield f"{count - ended} of {count} requests did not end"
    begun = columns["begin_ns"] >= 0
    if int(begun.sum()) < count:
        yield f"{count - int(begun.sum())} of {count} requests did not begin"
    opens = begun & (columns["due_ns"] >= 0)
    if not workload.thinks(seen.requested.options):
        firsts = np.zeros(count, np.bool_)  # later requests of a connection wait for those before them
        firsts[np.unique(columns["conn"], return_index=True)[1]] = True
        opens &= firsts
    late = np.where(opens, columns["begin_ns"] - columns["due_ns"], 0)
    if int((late > LATE_NS).sum()):
        yield f"{int((late > LATE_NS).sum())} of {count} requests began late, one by {late.max() / 1e6:g} ms"
    if int((late < 0).sum()):
        yield f"{int((late < 0).sum())} of {count} requests began before they came, one by {-late.min() / 1e6:g} ms"
    requested = max(int(columns["up"].sum()), int(columns["down"].sum()))
    for end in result.ends:
        if end.bytes is not None and end.bytes != requested:
            verb = "wrote" if end.role == "sender" else "read"
            yield f"its requests have {requested} bytes; the {end.role or 'application'} {verb} {end.bytes}"


def _unseen(seen: FlowView) -> Iterator[str]:
    """ACKs of bytes that a capture lacks: it missed packets."""
    for where, data, acks in ((seen.sender, seen.out, seen.acks_in), (seen.receiver, seen.into, seen.acks_out)):
        for conn in np.unique(acks["conn"]):
            acked = int(acks["ack"][acks["conn"] == conn].max())
            covered = _reach(data.of_conn(conn))
            if acked > covered + 1:  # a FIN takes one number
                yield f"{where}'s capture has bytes up to {covered} of connection {conn}; {acked} were acknowledged"


def _reach(rows: Rows) -> int:
    """First byte of a connection's payload that is missing."""
    rows = rows.where(rows["length"] > 0) if len(rows) else rows
    if not len(rows):
        return 0
    start, end = rows["seq"], rows["seq"] + rows["length"]
    if not bool((start[1:] >= start[:-1]).all()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    covered = np.maximum.accumulate(end)
    gap = np.flatnonzero(start[1:] > covered[:-1])
    return int(covered[gap[0]] if len(gap) else covered[-1])


def _counters(records: Records) -> Iterator[str]:
    """What a host's kernel counted coming in against what its capture saw arrive.

    Tcp.InSegs counts a merged packet once, the counters of IP by ECN field its packets on the wire.
    What a switch forwards its kernel does not count there.  Both count what comes by other devices, too, such as the
    management network of a host on a rack: where they have more, what the test network's device received is enough.
    """
    if not records.packets.num_rows:
        return
    where, names = records.codes("where")
    arriving = ~records.column("out")
    for code, name in enumerate(names):
        snmp = {} if name in records.switches else records.counters.get(name, {}).get("snmp", {})
        rows = arriving & (where == code)
        if not snmp or not rows.any():
            continue
        on_wire = [snmp[counter] for counter in _BY_ECN if counter in snmp]
        checks = [("packets", int(rows.sum()), snmp.get("Tcp.InSegs"), "Tcp.InSegs")]
        segs = int(records.column("segs")[rows].sum())
        devices = records.counters[name].get("device", {}).values()
        received = sum(device.get("rx_packets", 0) for device in devices)
        others = sum(snmp.get(counter, 0) for counter in _NO_TCP)
        who = "its capture and its kernel's other protocols have" if others else "its capture has"
        all_on_wire = sum(on_wire) if on_wire else None
        checks.append(("packets on the wire", segs + others, all_on_wire, "IpExt.In…Pkts, Ip6.In…Pkts"))
        for what, seen, counted, counter in checks:
            if counted is None or _near(counted, seen) or (counted > seen and _near(received, segs)):
                continue
            yield f"{name}: {who} {seen} arriving {what}; its kernel counted {counted} ({counter})"


def _retransmissions(records: Records) -> Iterator[str]:
    """What a host's capture has leaving again against what its TCP sent again, SYNs and FINs too.

    What the host's own queues dropped or still hold never left.  Other connections of the host are counted, too.
    """
    where, names = records.codes("where")
    for host in sorted(set(names) - set(records.switches)):
        counted = records.snmp(host).get("Tcp.RetransSegs")
        if counted is None or not records.recorded(host, "capture"):
            continue
        again = records.column("out") & records.column("retrans") & (where == names.index(host))
        seen = int(records.column("segs")[again].sum())
        kept = sum(queue.get("drops", 0) + queue.get("qlen", 0) for queue in records.counters[host].get("qdisc", []))
        kept += records.snmp(host).get("TcpExt.TCPRetransFail", 0)
        if seen > counted or (seen < counted - kept and counts_alone(records, host)):
            yield f"{host}: its capture has {seen} retransmissions; its kernel counted {counted} (Tcp.RetransSegs)"


def _near(counted: int, seen: int) -> bool:
    return abs(counted - seen) <= _SHARE * max(counted, seen) + _FEW
