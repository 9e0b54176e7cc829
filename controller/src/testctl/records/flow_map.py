# SPDX-License-Identifier: Apache-2.0
"""Maps packets and sockets to the flows of a point by server port, client ports and addresses."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

import numpy as np

from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec, numbered_flows
from testctl.records.schema import Array


@dataclass(frozen=True)
class FlowMap:
    """The flows of a point as arrays indexed by flow number (their order in point.json).

    hosts: names with an address, sorted; addresses: packed address -> index into hosts.
    source, sink: host index of `from` and `to`.  by_port: server port -> flow number, -1 none.
    numbered: how many connections of each a switch tells apart.
    """

    names: list[str]
    hosts: list[str]
    addresses: dict[bytes, int]
    source: Array
    sink: Array
    client_port: Array
    parallel: Array
    by_port: Array
    numbered: Array

    @classmethod
    def of(cls, point: PointSpec, outcome: Outcome) -> FlowMap:
        flows, given = point.flows, outcome.addresses
        hosts = sorted(given)
        addresses = {}
        for number, host in enumerate(hosts):
            texts = given[host]
            for text in [texts] if isinstance(texts, str) else texts:
                addresses[ipaddress.ip_address(text.partition("/")[0]).packed] = number
        by_port = np.full(1 << 16, -1, np.int16)
        for number, flow in enumerate(flows):
            by_port[flow.server_port] = number
        numbered = {flow.name for flow in numbered_flows(flows)}
        index = {host: number for number, host in enumerate(hosts)}
        return cls(
            names=[flow.name for flow in flows],
            hosts=hosts,
            addresses=addresses,
            source=np.array([index.get(flow.source, -2) for flow in flows], np.int16),
            sink=np.array([index.get(flow.sink, -2) for flow in flows], np.int16),
            client_port=np.array([flow.client_port for flow in flows], np.int32),
            parallel=np.array([flow.parallel for flow in flows], np.int32),
            by_port=by_port,
            numbered=np.array([flow.parallel if flow.name in numbered else 0 for flow in flows], np.int32),
        )

    def of_ports(self, sport: Array, dport: Array) -> tuple[Array, Array]:
        """(flow number, conn) of every pair of ports in either order; flow -1 where none has it."""
        if not self.names:
            return np.full(len(sport), -1, np.int16), np.zeros(len(sport), np.int16)
        flow = self.by_port[dport]
        turned = flow < 0
        client = sport.astype(np.int32)
        if turned.any():
            flow = np.where(turned, self.by_port[sport], flow)
            client = np.where(turned, dport, client)
        conn = client - self.client_port[flow]
        flow = np.where((conn >= 0) & (conn < self.parallel[flow]), flow, np.int16(-1))
        return flow, conn.astype(np.int16)

    def of_places(self) -> tuple[Array, Array]:
        """(flow number, conn) of every connection, in the order in which a switch numbers them."""
        flow = np.repeat(np.arange(len(self.names), dtype=np.int16), self.numbered)
        first = np.cumsum(self.numbered) - self.numbered
        return flow, (np.arange(len(flow)) - np.repeat(first, self.numbered)).astype(np.int16)
