# SPDX-License-Identifier: Apache-2.0
"""Runs that wait for a rack's machines in turn, and what `testctl status` prints meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_rack import rack_status, reservation
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement
from testctl_rack.reservation import Reservation

from plugins.rack.tests.loopback_rack import loopback_rack

NAMES = ("alpha", "beta")


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    """Two hosts on the loopback."""
    with loopback_rack(tmp_path, NAMES) as (made, _):
        yield made


def reserved(rack: Rack, holder: str, wait_s: float = 0.0) -> Reservation:
    return Reservation(rack, rack.machines.values(), holder, wait_s)


def test_the_second_is_refused_or_waits_its_turn(rack: Rack) -> None:
    first, second, third = (reserved(rack, name) for name in ("ann", "bob", "cem"))
    patient = reserved(rack, "bob", 600.0)
    waited: list[str] = []
    first.take()
    with pytest.raises(TestbedError, match=r"host alpha \(.*\): leased to ann since .*--wait"):
        second.take()
    began = threading.Event()
    thread = threading.Thread(target=patient.take, args=(lambda text: (waited.append(text), began.set()),))
    thread.start()
    assert began.wait(60)
    with pytest.raises(TestbedError, match=r"leased to ann since .*; bob waits since"):
        third.take()
    with RemoteAgents(rack, Placement(rack.machines), "ann", first.ticket):
        pass
    assert thread.is_alive(), "the first has a lease no more, and still its turn"
    first.close()
    thread.join(60)
    assert not thread.is_alive()
    with RemoteAgents(rack, Placement(rack.machines), "bob", patient.ticket):
        pass
    patient.close()
    assert waited == [text for text in waited if "host alpha" in text and "leased to ann" in text]


def test_status_names_who_has_it_and_who_waits(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    away = replace(rack.machines["beta"], out_of_service="its fan")
    found = Rack(rack.path, {**rack.machines, "beta": away}, rack.keys)
    monkeypatch.setattr(rack_status, "read_rack", lambda path: found)
    lines, answers = rack_status.rack_status(rack.path)
    assert answers
    assert ": free; Linux " in lines[0]
    assert lines[1].endswith("out of service: its fan")
    first = reserved(rack, "ann")
    first.take()
    assert ": leased to ann since 0 s; Linux" in rack_status.rack_status(rack.path)[0][0]
    first.close()


def test_status_of_a_machine_that_does_not_answer(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(rack.machines["beta"], listen="127.0.0.1:9")
    found = Rack(rack.path, {**rack.machines, "beta": gone}, rack.keys)
    monkeypatch.setattr(rack_status, "read_rack", lambda path: found)
    lines, answers = rack_status.rack_status(rack.path)
    assert not answers
    assert "host beta (127.0.0.1:9): not reachable" in lines[1]


def test_a_machine_that_boots_does_not_cost_the_others_their_turn(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    """One does not answer at all; the run keeps its place on the other one."""
    asked: list[str] = []
    seen = threading.Event()
    original = Reservation._ask

    def ask(self: Reservation, machine: Machine, leave: bool = False, keep: bool = False) -> object:
        if threading.current_thread() is threading.main_thread():
            return original(self, machine, leave, keep)
        asked.append(machine.name)
        if machine.name == "alpha":
            seen.wait(60)
        elif asked.count("beta") >= 2:
            seen.set()
        return original(self, machine, leave, keep)

    monkeypatch.setattr(reservation, "AGAIN_S", 0.1)
    monkeypatch.setattr(Reservation, "_ask", ask)
    first = reserved(rack, "ann")
    first.take()
    assert seen.wait(60), "beta is asked about again while alpha does not answer"
    assert asked.count("alpha") == 1
    first.close()
