# SPDX-License-Identifier: Apache-2.0
"""The point that a capture is: what it tells of hosts and flows, and its records, as a run's points have them.

A flow is one connection, or several to the same server (flows.py).  `from` is the client; flows whose server sends more
are `reverse`.  What the capture doesn't tell is not set: no kernel, no congestion control, no counters, no tcp_info.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from testctl.analyse.flows import CapturedFlow, names_of
from testctl.analyse.native.structures import TARGET
from testctl.analyse.walk import UNCHANGED, Clock, Scanned, copied, sort, write
from testctl.core.outcome import HostClock, Outcome
from testctl.core.point import PointSpec, TimedFlow
from testctl.core.topology import Topology
from testctl.records import Records
from testctl.records.packets import read_packets
from testctl.records.schema import TCP_INFO, Array, codes_of, names_column, numbers_of

GENERATOR = "capture"
"""The generator of its flows: an application that nobody knows."""
BEFORE = "before "
"""Name of the place of a capture between the hosts, with the name of the data's receiver behind."""
_CLIENT_PORTS = 1 << 15
_USUAL_MTU, _LARGEST_MTU = 1500, 65535
_HEADERS = {4: 40, 6: 60}
_NOTES = 10
_NO_SYN = "no SYN captured; numbers are relative to the first one seen"


@dataclass(frozen=True)
class Place:
    """Where the packets of a flow in one file were captured: an entity, and the direction of packets that leave it; -1:
    the capture is between the hosts, where data arrives and ACKs leave."""

    entity: str
    leaving: int


@dataclass(frozen=True)
class Side:
    """One file: its flows' connections by number there, which end of each is the client, and where each flow's packets
    were captured."""

    scanned: Scanned
    client: Array
    members: Sequence[Array]
    places: Sequence[Place]
    clock: Clock = UNCHANGED

    @property
    def first_ns(self) -> int:
        """The file's earliest time, by the clock of all."""
        return self.scanned.first_ns - self.clock.offset_ns


def mtu_of(connections: Array, family: int) -> int:
    """The size of the largest packet by the MSS options of connections; 0 without any."""
    mss = connections["mss"].astype(np.int64)
    mss[mss == 0] = _LARGEST_MTU
    least = int(mss.min())
    return least + _HEADERS[family] if least < _LARGEST_MTU else 0


def records_of(sides: Sequence[Side], flows: Sequence[CapturedFlow], reverse: Sequence[bool], work: Path) -> Records:
    """The records of files of the same flows; work: a directory for files that are removed.

    Raises RecordsError; OSError for the directory.
    """
    base_ns = min(side.first_ns for side in sides)
    mtus = [mtu_of(sides[0].scanned.connections[members], flow.family) for flow, members in
            zip(flows, sides[0].members, strict=True)]  # fmt: skip
    paths = {f"file{number}": work / f"file{number}.pcap" for number in range(len(sides))}
    for side, (name, path) in zip(sides, list(paths.items()), strict=True):
        write(side.scanned, _targets(side, flows, mtus), path, base_ns, side.clock)
        if side.scanned.backwards and side.scanned.data == side.scanned.path:
            paths[name] = sort(path, side.scanned.tcp)
    packets, notes = read_packets(paths, *_stand_in(flows, mtus))
    for path in paths.values():
        path.unlink()
    packets = _placed(packets, sides)
    spec, outcome = _point(flows, reverse, mtus, packets, base_ns)
    return Records(packets, TCP_INFO.empty_table(), {}, outcome, spec, _shortened(notes))


def _kinds(mtus: Sequence[int], flows: Sequence[CapturedFlow]) -> list[tuple[int, int]]:
    return sorted({(flow.family, mtu) for flow, mtu in zip(flows, mtus, strict=True)})


def _targets(side: Side, flows: Sequence[CapturedFlow], mtus: Sequence[int]) -> Array:
    """Each connection's frames get a pair of hosts that its family and MTU share, and ports that name flow and
    connection."""
    targets = np.zeros(len(side.scanned.connections), TARGET)
    kinds = _kinds(mtus, flows)
    twice = copied(side.scanned.connections)
    for number, (flow, mtu, members) in enumerate(zip(flows, mtus, side.members, strict=True)):
        host = 2 * kinds.index((flow.family, mtu)) + 1
        some = targets[members]
        some["client_host"], some["server_host"], some["written"] = host, host + 1, 1 + twice[members]
        some["client_port"] = _CLIENT_PORTS + np.arange(len(members))
        some["server_port"] = number + 1
        some["client"] = side.client[members]
        targets[members] = some
    return targets


def _stand_in(flows: Sequence[CapturedFlow], mtus: Sequence[int]) -> tuple[PointSpec, Outcome]:
    """The point whose hosts and ports the written frames have."""
    settings, addresses, made = {}, {}, []
    for number, (family, mtu) in enumerate(_kinds(mtus, flows)):
        for end in (1, 2):
            host = 2 * number + end
            name = f"{family} {mtu} {end}"
            settings[name] = {"mtu": mtu or _USUAL_MTU}
            packed = f"10.0.{host >> 8}.{host & 255}" if family == 4 else f"fd00::{host:x}"
            addresses[name] = packed
    for number, (flow, mtu) in enumerate(zip(flows, mtus, strict=True)):
        client, server = (f"{flow.family} {mtu} {end}" for end in (1, 2))
        options = {"family": flow.family}
        count = len(flow.members)
        made.append(TimedFlow(flow.name, client, server, GENERATOR, number + 1, _CLIENT_PORTS, count, options))
    return PointSpec("", settings=settings, flows=tuple(made)), Outcome(addresses=addresses)


def _placed(packets: pa.Table, sides: Sequence[Side]) -> pa.Table:
    """The table with where and out as each flow's place in each file says."""
    names = list(dict.fromkeys(place.entity for side in sides for place in side.places))
    code = np.array([[names.index(place.entity) for place in side.places] for side in sides], np.int16)
    leaving = np.array([[place.leaving for place in side.places] for side in sides], np.int8)
    source, _ = codes_of(packets, "where")
    flow, _ = codes_of(packets, "flow")
    out = numbers_of(packets, "direction") == leaving[source, flow]
    columns: Mapping[str, pa.Array] = {"where": names_column(code[source, flow], names), "out": pa.array(out)}
    for name, column in columns.items():
        index = packets.schema.get_field_index(name)
        packets = packets.set_column(index, packets.schema.field(index), column)
    return packets


def _point(
    flows: Sequence[CapturedFlow], reverse: Sequence[bool], mtus: Sequence[int], packets: pa.Table, base_ns: int
) -> tuple[PointSpec, Outcome]:
    """What the capture tells of its hosts and flows."""
    time_ns, flow_of = numbers_of(packets, "time_ns"), codes_of(packets, "flow")[0]
    end_ns = int(time_ns[-1]) if len(time_ns) else 0
    first, last = np.full(len(flows), end_ns), np.zeros(len(flows), np.int64)
    np.minimum.at(first, flow_of, time_ns)
    np.maximum.at(last, flow_of, time_ns)
    settings: dict[str, dict[str, int]] = {}
    for flow, mtu in zip(flows, mtus, strict=True):
        for host in (flow.client, flow.server):
            of_host = settings.setdefault(host, {"mtu": 0})
            of_host["mtu"] = max(of_host["mtu"], mtu or _LARGEST_MTU)
    made = tuple(
        TimedFlow(
            flow.name, flow.client, flow.server, GENERATOR, flow.server_port, flow.client_port, len(flow.members),
            {"family": flow.family, "reverse": back}, int(start), int(end - start),
        )
        for flow, back, start, end in zip(flows, reverse, first.tolist(), last.tolist(), strict=True)
    )  # fmt: skip
    hosts = {name: name for name in names_of(flows)}
    spec = PointSpec("", settings=settings, flows=made, topology=Topology("capture", hosts=hosts), duration_ns=end_ns)
    return spec, Outcome(addresses=hosts, t0_ns=base_ns, end_ns=base_ns + end_ns)


def with_clocks(records: Records, clocks: Mapping[str, HostClock]) -> Records:
    return replace(records, outcome=replace(records.outcome, clocks=clocks), memo={})


def _shortened(notes: list[str]) -> list[str]:
    rest = [note for note in notes if not note.endswith(_NO_SYN)]
    if count := len(notes) - len(rest):
        rest.append(f"{count} directions of connections have no SYN: their numbers are relative to the first one seen")
    more = len(rest) - _NOTES
    return [*rest[:_NOTES], *([f"… and {more} more of these"] if more > 0 else [])]
