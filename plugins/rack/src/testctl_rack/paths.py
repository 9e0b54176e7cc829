# SPDX-License-Identifier: Apache-2.0
"""The paths between the machines of a rack: the probe of their MTU, and a comparison of the hosts' clocks."""

from __future__ import annotations

from typing import Any

from testctl.core.outcome import HostClock
from testctl.core.point import PointSpec
from testctl.testbeds.agents import Agents
from testctl.testbeds.preflight import Paths
from testctl_agent.wire.results import COMPARED

from testctl_rack.clocks import clocks_of

CLOCK_PORT = 7408
CLOCK_COUNT, CLOCK_INTERVAL_NS, CLOCK_SPAN_NS = 50, 2 * 10**6, 3 * 10**8
CLOCK = {"count": CLOCK_COUNT, "interval_ns": CLOCK_INTERVAL_NS, "span_ns": CLOCK_SPAN_NS}


class RackPaths(Paths):
    def __init__(self, point: PointSpec, agents: Agents) -> None:
        super().__init__(point, agents)
        self._results: dict[str, list[dict[str, Any]]] = {}
        self._reference: dict[str, Any] = {}

    def compare_clocks(self) -> None:
        """Exchange packets between the first host and every other one; call it before and after the traffic."""
        reference, *others = self.point.topology.hosts
        for index, host in enumerate(others):
            with self.server("collector", "clock", host, reference, CLOCK_PORT + 2 * index) as options:
                result = self.client("collector", "clock", host, options | CLOCK, COMPARED)
            self._results.setdefault(host, []).append(result)
            self._reference = options["result"]

    def clocks(self) -> dict[str, HostClock]:
        """The offset of each host's clock from the first host's."""
        return clocks_of(next(iter(self.point.topology.hosts)), self._reference, self._results) if self._results else {}
