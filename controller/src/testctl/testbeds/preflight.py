# SPDX-License-Identifier: Apache-2.0
"""Checks of real paths before and after the traffic: a packet of the MTU in each direction, and a clock comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from testctl_agent.params.flow.socket import IPV4
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.untrusted import Shape, misfit
from testctl_agent.wire import messages
from testctl_agent.wire.messages import plain_options
from testctl_agent.wire.results import COMPARED, PROBED

from testctl.core.outcome import HostClock
from testctl.core.point import PointSpec
from testctl.testbeds.agents import Agents
from testctl.testbeds.clocks import clocks_of
from testctl.testbeds.point_runner import result_of

Json = dict[str, Any]
PROBE_PORT = 7407
CLOCK_PORT = 7408
CLOCK_COUNT, CLOCK_INTERVAL_NS, CLOCK_SPAN_NS = 50, 2 * 10**6, 3 * 10**8
CLOCK = {"count": CLOCK_COUNT, "interval_ns": CLOCK_INTERVAL_NS, "span_ns": CLOCK_SPAN_NS}
LIMIT_NS = 30 * 10**9


class Paths:
    """The paths of a point's flows.  Nothing of this runs while the point's traffic does."""

    def __init__(self, point: PointSpec, agents: Agents) -> None:
        self._point = point
        self._agents = agents
        self._hosts: Mapping[str, str] = point.topology.hosts
        self._results: dict[str, list[Json]] = {}
        self._reference: Json = {}
        self._started = 0

    def probe(self) -> None:
        """Raises TestbedError unless packets of the MTU that the plan sets pass on every flow's path, both ways."""
        paths = dict.fromkeys((*flow.ends, flow.family) for flow in self._point.flows)
        for index, (near, far, family) in enumerate(paths):
            mtu = self._point.state.get(near, {}).get("mtu")
            if mtu is None:
                continue
            with self._server("generator", "probe", near, far, PROBE_PORT + 2 * index, family) as options:
                found = self._client("generator", "probe", near, options | {"bytes": mtu}, PROBED)
            if not found["passes"]:
                over = "" if family == IPV4 else f", over IPv{family}"
                raise TestbedError(
                    f"path {near} to {far}{over}: want packets of {mtu} bytes to pass; {found['why']} (largest there "
                    f"{found['largest_forward']}, back {found['largest_backward']}): is every switch set to it?"
                )

    def compare_clocks(self) -> None:
        """Exchange packets between the first host and every other one; call it before and after the traffic."""
        reference, *others = self._hosts
        for index, host in enumerate(others):
            with self._server("collector", "clock", host, reference, CLOCK_PORT + 2 * index) as options:
                found = self._client("collector", "clock", host, options | CLOCK, COMPARED)
            self._results.setdefault(host, []).append(found)
            self._reference = options["result"]

    def clocks(self) -> dict[str, HostClock]:
        """The offset of each host's clock from the first host's."""
        return clocks_of(next(iter(self._hosts)), self._reference, self._results) if self._results else {}

    @contextmanager
    def _server(self, kind: str, name: str, near: str, far: str, port: int, family: int = IPV4) -> Iterator[Json]:
        """The far side, while the near one asks; yields the near one's options, later with the far one's "result"."""
        there, here = (self._point.topology.address(host, family) for host in (far, near))
        both: Json = {"address": there, "port": port, "seed": self._point.seed}
        options = both | {"side": "client", "bind": here}
        task = self._start(far, kind, name, both | {"side": "server", "peer": here})
        try:
            yield options
        except BaseException:
            with suppress(TestbedError):
                self._agents.call(far, "Stop", messages.StopRequest(task=task))
            raise
        options["result"] = self._result(
            far, task, name, self._agents.call(far, "Stop", messages.StopRequest(task=task))
        )

    def _client(self, kind: str, name: str, near: str, options: Json, wanted: Shape) -> Json:
        task = self._start(near, kind, name, options)
        request = messages.WaitRequest(task=task, timeout_ns=LIMIT_NS)
        status = self._agents.call(near, "Wait", request, LIMIT_NS / 1e9 + 10)
        if not status.ended:
            status = self._agents.call(near, "Stop", messages.StopRequest(task=task))
        found = self._result(near, task, name, status)
        if why := misfit(found, wanted):
            raise TestbedError(f"{near}, {task}: its result: {why}")
        return found

    def _start(self, agent: str, kind: str, name: str, options: Json) -> str:
        """The new task's name, which no task of the point had before."""
        self._started += 1
        task = f"{name}-{self._started}"
        request = messages.StartRequest(task=task, kind=kind, name=name, options=plain_options(options))
        self._agents.call(agent, "Start", request)
        return task

    def _result(self, agent: str, task: str, name: str, status: messages.TaskStatus) -> Json:
        if not status.ok:
            raise TestbedError(f"{agent}, {task}: {status.error or 'did not end'}")
        return result_of(f"{agent}, {task}", status.result, name)
