# SPDX-License-Identifier: Apache-2.0
"""Leases on several machines: those that a run has are renewed while it waits for the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from testctl_agent.daemon import agent_pb2 as pb
from testctl_agent.spec.errors import TestbedError
from testctl_rack import leased_agents, rack
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement

from plugins.rack.tests.test_channels import Refused

MACHINES = {name: Machine(name, "host", "192.0.2.1:7400") for name in ("alpha", "beta")}


class Renewal:
    """A renewal that has ended."""

    def add_done_callback(self, call: Callable[[object], None]) -> None:
        call(self)

    def result(self) -> pb.Lease:
        return pb.Lease(token="ab", time_ns=time.time_ns())


class Agent:
    """An agent whose lease is had once `ready` is true."""

    def __init__(self, ready: Callable[[], object]) -> None:
        self.ready = ready
        self.renewed = threading.Event()
        self.released = 0
        self.Renew = self

    def Acquire(self, *_: object, **__: object) -> pb.Lease:
        self.ready()
        return pb.Lease(token="ab", time_ns=time.time_ns())

    def future(self, *_: object, **__: object) -> Renewal:
        self.renewed.set()
        return Renewal()

    def Release(self, *_: object, **__: object) -> pb.ReleaseReply:
        self.released += 1
        return pb.ReleaseReply()


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> dict[str, Agent]:
    alpha = Agent(lambda: None)
    made = {"alpha": alpha, "beta": Agent(lambda: alpha.renewed.wait(20))}
    monkeypatch.setenv(leased_agents.LEASE, "1")
    monkeypatch.setattr(leased_agents, "read_keys", lambda _: None)
    monkeypatch.setattr(leased_agents, "open_channel", lambda machine, _: Channel(machine))
    monkeypatch.setattr(leased_agents, "Stub", lambda channel: made[channel.name])
    return made


class Channel:
    def __init__(self, machine: Machine) -> None:
        self.name = machine.name

    def close(self) -> None:
        pass


def remote(holder: str = "ann") -> RemoteAgents:
    return RemoteAgents(Rack(Path(), MACHINES, Path()), Placement(MACHINES), holder)


def test_a_lease_is_renewed_while_another_machine_is_waited_for(agents: dict[str, Agent]) -> None:
    with remote():
        assert agents["alpha"].renewed.is_set()
    assert [agent.released for agent in agents.values()] == [1, 1]


def refuses(text: str) -> Callable[[], Any]:
    def refused() -> None:
        raise Refused(grpc.StatusCode.ABORTED, text)

    return refused


def test_a_lease_that_is_not_had_leaves_none(agents: dict[str, Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leased_agents, "LOOKED_S", 0.0)
    agents["beta"].ready = refuses("host beta: leased to bob")
    threads = threading.active_count()
    with pytest.raises(TestbedError, match="leased to bob"):
        remote().__enter__()
    assert [agent.released for agent in agents.values()] == [1, 0]
    assert threading.active_count() == threads


@pytest.mark.parametrize(("process", "tries"), [("12", 2), ("123", 1)])
def test_only_what_this_run_has_left_is_waited_for_until_it_is_restored(
    agents: dict[str, Agent], monkeypatch: pytest.MonkeyPatch, process: str, tries: int
) -> None:
    """Process 12 is not process 123."""
    asked = []

    def once() -> None:
        asked.append("beta")
        if len(asked) == 1:
            refuses(f"host beta: leased to ann@desk, process {process}, point 1")()

    monkeypatch.setattr(leased_agents, "LOOKED_S", -1.0)
    agents["beta"].ready = once
    given_up = pytest.raises(TestbedError, match="process 123, point 1")
    with nullcontext() if tries == 2 else given_up, remote("ann@desk, process 12, point 2"):
        pass
    assert len(asked) == tries


def test_a_machine_that_was_restored_is_whatever_becomes_of_the_lease() -> None:
    """A lease may end while Restore takes long."""
    agent = Agent(lambda: None)
    restored = pb.RestoreReply()
    release = refuses("Release wants a lease; the one given has ended")
    stub = SimpleNamespace(Acquire=agent.Acquire, Restore=lambda *_, **__: restored, Release=lambda *_, **__: release())
    assert rack._restored_alone(stub) is restored
