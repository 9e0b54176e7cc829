# SPDX-License-Identifier: Apache-2.0
"""Checks of real paths before the traffic: a packet of the MTU in each direction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from testctl_agent.params.flow.socket import IPV4
from testctl_agent.spec.errors import TestbedError
from testctl_agent.spec.untrusted import Shape, misfit
from testctl_agent.wire import messages
from testctl_agent.wire.messages import plain_options
from testctl_agent.wire.results import PROBED

from testctl.core.point import PointSpec
from testctl.testbeds.agents import Agents
from testctl.testbeds.point_runner import result_of

Json = dict[str, Any]
PROBE_PORT = 7407
LIMIT_NS = 30 * 10**9


class Paths:
    """The paths of a point's flows.  Nothing of this runs while the point's traffic does."""

    def __init__(self, point: PointSpec, agents: Agents) -> None:
        self.point = point
        self._agents = agents
        self._started = 0

    def probe(self) -> None:
        """Raises TestbedError unless packets of the MTU that the plan sets pass on every flow's path, both ways."""
        paths = dict.fromkeys((*flow.ends, flow.family) for flow in self.point.flows)
        for index, (near, far, family) in enumerate(paths):
            mtu = self.point.state.get(near, {}).get("mtu")
            if mtu is None:
                continue
            with self.server("generator", "probe", near, far, PROBE_PORT + 2 * index, family) as options:
                result = self.client("generator", "probe", near, options | {"bytes": mtu}, PROBED)
            if not result["passes"]:
                over = "" if family == IPV4 else f", over IPv{family}"
                raise TestbedError(
                    f"path {near} to {far}{over}: want packets of {mtu} bytes to pass; {result['why']} (largest there "
                    f"{result['largest_forward']}, back {result['largest_backward']}): is every switch set to it?"
                )

    @contextmanager
    def server(self, kind: str, name: str, near: str, far: str, port: int, family: int = IPV4) -> Iterator[Json]:
        """The far side, while the near one asks; yields the near one's options, later with the far one's "result"."""
        there, here = (self.point.topology.address(host, family) for host in (far, near))
        both: Json = {"address": there, "port": port, "seed": self.point.seed}
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

    def client(self, kind: str, name: str, near: str, options: Json, wanted: Shape) -> Json:
        task = self._start(near, kind, name, options)
        request = messages.WaitRequest(task=task, timeout_ns=LIMIT_NS)
        status = self._agents.call(near, "Wait", request, LIMIT_NS / 1e9 + 10)
        if not status.ended:
            status = self._agents.call(near, "Stop", messages.StopRequest(task=task))
        result = self._result(near, task, name, status)
        if why := misfit(result, wanted):
            raise TestbedError(f"{near}, {task}: its result: {why}")
        return result

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
