# SPDX-License-Identifier: Apache-2.0
"""A point's records as the figures ask for them: who sends, who receives, which port queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from testctl.metrics.core.capacity import path as way_between
from testctl.report.span import shown_ns
from testctl.results import layout
from testctl.serve import listing
from testctl.serve.tables import Group, Key, Packets, open_packets

MOST_LANES = 200
"""Connections that can be chosen: those with most bytes."""


@dataclass(frozen=True)
class Flow:
    """A flow by role.  direction: the one that carried more payload.

    roles: those that have packets, of out, into, acks_in, acks_out as testctl.metrics.core.view.FlowView has
    them, with their numbers in the table of packets.
    """

    name: str
    direction: int
    sender: str
    receiver: str
    roles: Mapping[str, int]
    wire_bytes: int

    @property
    def sink(self) -> int:
        """What throughput is counted on; -1 without any."""
        return self.roles.get("into", self.roles.get("out", -1))

    @property
    def data(self) -> int:
        """What data packets are taken from: departures, or arrivals when the sender was not captured."""
        return self.roles.get("out", self.roles.get("into", -1))

    @property
    def acks(self) -> int:
        """What ACKs are taken from."""
        return self.roles.get("acks_in", self.roles.get("acks_out", -1))


@dataclass(frozen=True)
class Source:
    """What a point recorded.

    files    the Parquet files that are there, by name
    lanes    (flow, conn), those with most bytes first, at most MOST_LANES; lanes_in_all counts all
    ports    {role of a switch's packets: the port they leave by}
    """

    path: Path
    asked: Mapping[str, Any]
    files: Mapping[str, Path]
    packets: Packets | None
    flows: Sequence[Flow]
    lanes: Sequence[tuple[str, int]]
    lanes_in_all: int
    ports: Mapping[int, str]

    @property
    def count(self) -> int:
        """How many packets were recorded."""
        return sum(group.packets for group in self.groups)

    @property
    def last_ns(self) -> int:
        """When the last packet was seen."""
        return max((group.last_ns for group in self.groups), default=0)

    @property
    def groups(self) -> Sequence[Group]:
        """Sums over the packets."""
        return self.packets.groups if self.packets is not None else ()

    @property
    def duration_ns(self) -> int:
        """What the figures show at first."""
        return shown_ns(self.asked, self.last_ns)

    def flow(self, name: str) -> Flow | None:
        """The flow of that name, if it has packets."""
        return next((flow for flow in self.flows if flow.name == name), None)


def read_source(path: Path, database: duckdb.DuckDBPyConnection) -> Source:
    """A point's records, looked at once.  Raises PlanError, duckdb.Error when they can't be read."""
    asked = listing.own_json(path, layout.POINT)
    names = (layout.PACKETS, layout.TCP_INFO, layout.TCP_EVENTS, layout.STALLS)
    files = {name: found for name in names if (found := listing.own_file(path, name)) is not None}
    packets = open_packets(database, files[layout.PACKETS]) if layout.PACKETS in files else None
    groups, roles = (packets.groups, packets.roles) if packets is not None else ((), {})
    flows = [flow for said in asked.get("flows", []) if (flow := _flow(said, groups, roles)) is not None]
    flows.sort(key=lambda flow: -flow.wire_bytes)
    weights: dict[tuple[str, int], int] = {}
    for group in groups:
        lane = group.key[1], group.conn
        weights[lane] = weights.get(lane, 0) + group.length
    lanes = sorted(weights, key=lambda lane: (-weights[lane], lane))
    ports = {role: port for flow in flows for role, port in _ports(flow, asked, roles)}
    return Source(path, asked, files, packets, flows, lanes[:MOST_LANES], len(lanes), ports)


def _flow(said: Mapping[str, Any], groups: Sequence[Group], roles: Mapping[Key, int]) -> Flow | None:
    name, ends = str(said["name"]), (str(said["from"]), str(said["to"]))
    mine = [group for group in groups if group.key[1] == name]
    if not mine:
        return None
    sums: dict[Key, int] = {}
    for group in mine:
        sums[group.key] = sums.get(group.key, 0) + group.length
    carried = [max(sums.get((ends[d], name, d, True), 0), sums.get((ends[1 - d], name, d, False), 0)) for d in (0, 1)]
    direction = 1 if carried[1] > carried[0] else 0
    sender, receiver = ends if direction == 0 else ends[::-1]
    keys: dict[str, Key] = {
        "out": (sender, name, direction, True),
        "into": (receiver, name, direction, False),
        "acks_in": (sender, name, 1 - direction, False),
        "acks_out": (receiver, name, 1 - direction, True),
    }
    there = {role: roles[key] for role, key in keys.items() if key in roles}
    return Flow(name, direction, sender, receiver, there, sum(group.wire_bytes for group in mine))


def _ports(flow: Flow, asked: Mapping[str, Any], roles: Mapping[Key, int]) -> list[tuple[int, str]]:
    """The switch ports that a flow's packets leave by, both ways; the switch alone without a topology."""
    topology = asked.get("topology") or {}
    switches = set(topology.get("switches", ()))
    ends = {flow.direction: (flow.sender, flow.receiver), 1 - flow.direction: (flow.receiver, flow.sender)}
    found = []
    for key, role in roles.items():
        where, name, direction, _ = key
        if name == flow.name and where in switches:
            onward = dict(pairwise(way_between(topology, *ends[direction])))
            found.append((role, f"{where}:{onward[where]}" if where in onward else where))
    return found
