# SPDX-License-Identifier: Apache-2.0
"""What a host can't have, a collector or a value: an agent says why, and the point is skipped with that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.core.point import PointSpec
from testctl.core.topology import Topology
from testctl.testbeds.agents import Agents, LocalAgents
from testctl.testbeds.point_runner import PointRun, Skip
from testctl.testbeds.traffic_time import LEAD_NS, VirtualTime, WallTime
from testctl_agent.engine.factory import AgentConfig, assemble
from testctl_agent.engine.local import serve
from testctl_agent.engine.service import Service
from testctl_agent.params.host import tcp_events
from testctl_agent.spec.errors import Unavailable
from testctl_agent.wire import messages
from testctl_agent.wire.pipe import Pipe


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    """One agent, `sender`, of no device."""
    config = AgentConfig("sender", "host", {}, tmp_path, tmp_path / "journal")
    state = assemble(config)
    state.parameters = lambda kind: []
    service = Service(state)
    (requests, sends), (receives, replies) = os.pipe(), os.pipe()
    with os.fdopen(requests, "rb") as taken, os.fdopen(replies, "wb") as given:
        thread = threading.Thread(target=serve, args=(service, taken, given))
        thread.start()
        pipe = Pipe(os.fdopen(sends, "wb"), os.fdopen(receives, "rb"))
        yield LocalAgents({"sender": pipe})
        pipe.close()
        thread.join()
    service.close()


def point(**collect: Any) -> PointSpec:
    return PointSpec("0", topology=Topology(hosts={"sender": "10.0.0.1/24"}), collect={"sender": collect})


def test_it_is_skipped(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_events, "unavailable", lambda: "this kernel has no BTF")
    with pytest.raises(Skip, match=r"^sender, tcp_events: this kernel has no BTF$"):
        PointRun(point(tcp_events={}), agents, VirtualTime(1)).run()


def test_who_does_not_want_it_is_not_skipped(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_events, "unavailable", lambda: "this kernel has no BTF")
    run = PointRun(point(), agents, VirtualTime(time.time_ns() + 5 * LEAD_NS))
    assert run.run().error == ""


def test_a_value_that_can_not_be_had_is_skipped_but_not_in_a_lab(agents: Agents) -> None:
    asked = replace(point(), state={"sender": {"kernel": "0.1"}})
    with pytest.raises(Skip, match=r"^host sender, kernel: want 0\.1; got "):
        PointRun(asked, agents, WallTime()).run()
    with pytest.raises(Unavailable, match=r"^host sender, kernel: want 0\.1; got "):
        PointRun(asked, agents, VirtualTime(1)).run()


def test_where_time_is_real_all_collectors_start_ahead_of_t0(agents: Agents) -> None:
    asked = point(counters={"devices": "lo"}, tcp_info={"interval_ns": 10**7, "ports": "5001"})
    begun_ns = time.time_ns()
    outcome = PointRun(asked, agents, WallTime()).run()
    assert begun_ns + LEAD_NS < outcome.t0_ns <= outcome.end_ns + LEAD_NS
    assert outcome.collected["sender"].keys() == {"counters", "tcp_info"}


class Described:
    """Agents that answer Describe alone: a host's kernel and a switch's, in either order."""

    def __init__(self, **kernels: tuple[str, str]) -> None:
        self.kernels = kernels
        self.names = tuple(kernels)

    def all(self, method: str, requests: dict[str, Any]) -> dict[str, messages.Description]:
        assert method == "Describe"
        return {name: messages.Description(name=name, kind=kind, kernel=release) for name, (kind, release) in
                self.kernels.items()}  # fmt: skip


@pytest.mark.parametrize("last", ["host", "switch"])
def test_a_points_kernel_is_that_of_its_hosts(last: str) -> None:
    """On a rack the switch may run another one."""
    there = {"sender": ("host", "6.1.0"), "s1": ("switch", "6.12.0")}
    agents = Described(**(there if last == "switch" else dict(reversed(there.items()))))
    run = PointRun(point(), agents, WallTime())  # type: ignore[arg-type]
    run._describe()
    assert run.outcome.kernel == "6.1.0"
