# SPDX-License-Identifier: Apache-2.0
"""A point's records as the figures ask for them: who sends, who receives, which port queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testctl.metrics.core.capacity import path as way_between
from testctl.results import layout
from testctl.serve import listing

if TYPE_CHECKING:
    import duckdb

MOST_LANES = 200
"""Connections that can be chosen: those with most bytes."""

_SHAPE = """
select "where", flow, conn, direction, out, sum(length), count(*), max(time_ns), sum(wire_bytes)
from read_parquet(?) group by all
"""


@dataclass(frozen=True)
class Flow:
    """A flow by role.  direction: the one that carried more payload; has: the roles with packets.

    Roles: out, into, acks_in, acks_out, as testctl.metrics.core.view.FlowView has them.
    """

    name: str
    direction: int
    sender: str
    receiver: str
    has: frozenset[str]
    wire_bytes: int

    def role(self, name: str) -> tuple[str, list[Any]]:
        """A role as an SQL condition and its parameters."""
        where, direction, out = self._roles()[name]
        return '(flow = ? and "where" = ? and direction = ? and out = ?)', [self.name, where, direction, out]

    @property
    def sink(self) -> str:
        """What throughput is counted on."""
        return "into" if "into" in self.has else "out"

    @property
    def data(self) -> str:
        """What data packets are taken from: departures, or arrivals when the sender was not captured."""
        return "out" if "out" in self.has else "into"

    @property
    def acks(self) -> str:
        """What ACKs are taken from."""
        return "acks_in" if "acks_in" in self.has else "acks_out"

    def _roles(self) -> dict[str, tuple[str, int, bool]]:
        back = 1 - self.direction
        return {
            "out": (self.sender, self.direction, True),
            "into": (self.receiver, self.direction, False),
            "acks_in": (self.sender, back, False),
            "acks_out": (self.receiver, back, True),
        }


@dataclass(frozen=True)
class Source:
    """What a point recorded.

    files    the Parquet files that are there, by name
    lanes    (flow, conn), those with most bytes first, at most MOST_LANES; lanes_in_all counts all
    ports    (switch, flow, direction, the port its packets leave by)
    """

    path: Path
    asked: Mapping[str, Any]
    files: Mapping[str, Path]
    flows: Sequence[Flow]
    lanes: Sequence[tuple[str, int]]
    lanes_in_all: int
    ports: Sequence[tuple[str, str, int, str]]
    packets: int
    last_ns: int

    @property
    def duration_ns(self) -> int:
        """What the figures show at first: as long as was asked for, or until the last packet."""
        asked = int(self.asked.get("duration_ns") or 0)
        return asked if asked and self.last_ns <= asked * 1.02 else self.last_ns + 1

    def flow(self, name: str) -> Flow | None:
        """The flow of that name, if it has packets."""
        return next((flow for flow in self.flows if flow.name == name), None)


def read_source(path: Path, cursor: duckdb.DuckDBPyConnection) -> Source:
    """A point's records, looked at once.  Raises PlanError, duckdb.Error when they can't be read."""
    asked = listing.own_json(path, layout.POINT)
    names = (layout.PACKETS, layout.TCP_INFO, layout.TCP_EVENTS, layout.STALLS)
    files = {name: found for name in names if (found := listing.own_file(path, name)) is not None}
    rows: list[tuple[Any, ...]] = []
    if layout.PACKETS in files:
        rows = cursor.execute(_SHAPE, [str(files[layout.PACKETS])]).fetchall()
    flows = [flow for said in asked.get("flows", []) if (flow := _flow(said, rows)) is not None]
    flows.sort(key=lambda flow: -flow.wire_bytes)
    weights: dict[tuple[str, int], int] = {}
    for _, flow, conn, _, _, length, *_ in rows:
        weights[flow, conn] = weights.get((flow, conn), 0) + int(length)
    lanes = sorted(weights, key=lambda lane: (-weights[lane], lane))
    switches = {row[0] for row in rows} & set(asked.get("topology", {}).get("switches", []))
    return Source(
        path=path,
        asked=asked,
        files=files,
        flows=flows,
        lanes=lanes[:MOST_LANES],
        lanes_in_all=len(lanes),
        ports=[port for flow in flows for port in _ports(flow, asked, switches)],
        packets=sum(int(row[6]) for row in rows),
        last_ns=max((int(row[7]) for row in rows), default=0),
    )


def _flow(said: Mapping[str, Any], rows: Sequence[tuple[Any, ...]]) -> Flow | None:
    name, ends = str(said["name"]), (str(said["from"]), str(said["to"]))
    sums = {0: 0, 1: 0}
    mine = [row for row in rows if row[1] == name]
    for where, _, _, direction, out, length, *_ in mine:
        if where == (ends[direction] if out else ends[1 - direction]):
            sums[direction] = max(sums[direction], int(length))
    direction = 1 if sums[1] > sums[0] else 0
    sender, receiver = ends if direction == 0 else ends[::-1]
    seen = {(row[0], row[3], row[4]) for row in mine}
    bare = Flow(name, direction, sender, receiver, frozenset(), 0)
    has = frozenset(role for role, key in bare._roles().items() if key in seen)
    weight = sum(int(row[8]) for row in mine)
    return Flow(name, direction, sender, receiver, has, weight) if mine else None


def _ports(flow: Flow, asked: Mapping[str, Any], switches: set[str]) -> list[tuple[str, str, int, str]]:
    """The switch ports that a flow's packets leave by, both ways; the switch alone without a topology."""
    found = []
    for direction, ends in ((flow.direction, (flow.sender, flow.receiver)),
                            (1 - flow.direction, (flow.receiver, flow.sender))):  # fmt: skip
        onward = dict(pairwise(way_between(asked.get("topology", {}), *ends)))
        for switch in sorted(switches):
            if switch in onward or not onward:
                port = f"{switch}:{onward[switch]}" if onward else switch
                found.append((switch, flow.name, direction, port))
    return found
