# SPDX-License-Identifier: Apache-2.0
"""Runs that boot machines of a rack: never one that another run has, and nobody else gets one while it boots."""

from __future__ import annotations

import pickle
import signal
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from testctl.testbeds.ready import NotOurs
from testctl_agent.spec.errors import TestbedError
from testctl_rack import boot_once, booted, kernels, menus, reservation
from testctl_rack import rack as racks
from testctl_rack.booted import Seen
from testctl_rack.inventory_file import Machine
from testctl_rack.kernels import Kernels
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement
from testctl_rack.reservation import Reservation

from plugins.rack.tests.rack.bed import Bed

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]
NEW, OLD = "6.12.117+deb12-amd64", "6.1.0-56-amd64"
DOWN_S = 2.0


class Hosts:
    """The rack's hosts, and in place of SSH what root does there; a reboot starts the agent again."""

    def __init__(self, bed: Bed) -> None:
        self.bed, self.rack = bed, bed.hosts()
        self.release = dict.fromkeys(self.rack.machines, NEW)
        self.was = dict.fromkeys(self.rack.machines, "")
        self.boots = dict.fromkeys(self.rack.machines, 0)

    def on_hosts(self, inventory: Path, hosts: Iterable[str], script: Path, words: list[str]) -> dict[str, Any]:
        return {host: self.root(host, words) for host in hosts}

    def root(self, host: str, words: list[str]) -> dict[str, Any]:
        if words[0] in ("once", "reboot"):
            boot_once.LEASE = self.bed.where / host / "boot.json"
            try:
                boot_once._leased(words[-1])
            except boot_once.Wrong as error:
                return {"error": str(error)}
            self.bed.kill(host, signal.SIGTERM)
            self.boots[host] += 1
            self.release[host], self.was[host] = (words[1], words[2]) if words[0] == "once" else (NEW, "")
            time.sleep(DOWN_S)
            self.bed.start(host)
        return {"kernels": [NEW, OLD], "running": self.release[host], "was": self.was[host], "default": NEW}

    def seen(self, name: str) -> Seen:
        return Seen(self.release[name], str(self.boots[name]), self.was[name])

    def kernels(self, ann: Reservation, notes: Path) -> Kernels:
        notes.mkdir()
        machines = self.rack.machines
        installed = dict.fromkeys(machines, (NEW, OLD))
        return Kernels(self.rack, machines, dict.fromkeys(machines, NEW), installed, notes, ann.ticket)


@pytest.fixture
def hosts(rack: Bed, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    found = Hosts(rack)
    describe = booted.Booted.reached

    def reached(self: booted.Booted, machines: Iterable[Machine]) -> tuple[dict[str, Seen], dict[str, str]]:
        seen, wrong = describe(self, machines)
        return {name: found.seen(name) for name in seen}, wrong

    monkeypatch.setattr(boot_once, "LEASE", boot_once.LEASE)
    monkeypatch.setattr(booted.Booted, "reached", reached)
    monkeypatch.setattr(racks, "read_rack", lambda path: found.rack)
    for module in (menus, kernels):
        monkeypatch.setattr(module, "on_hosts", found.on_hosts)
    return found


def reserved(hosts: Hosts, who: str, wait_s: float = 0.0) -> Reservation:
    return Reservation(hosts.rack, hosts.rack.machines.values(), who, wait_s)


def test_a_machine_that_another_run_has_is_not_booted(
    hosts: Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ann's controller sleeps, bob's run gets the machines; hers goes on, ends, and somebody restores the rack."""
    ann, bob = reserved(hosts, "ann"), reserved(hosts, "bob")
    ann.take()
    ours = hosts.kernels(ann, tmp_path / "notes")
    ann.leave()  # as agents believe after 12 s without a word of hers
    bob.take()
    hosts.was["alpha"] = NEW
    with RemoteAgents(hosts.rack, Placement(hosts.rack.machines), "bob", bob.ticket):
        for attempt in (
            lambda: ours.ensure({"alpha": "6.1", "beta": "6.1"}),
            lambda: racks.restore(hosts.rack.path, 0.0),
        ):
            with pytest.raises(TestbedError, match=r"host alpha .*leased to bob"):
                attempt()
        hosts.release["alpha"] = OLD
        with pytest.raises(TestbedError, match=r"host alpha .*leased to bob"):
            ours.end()
    assert hosts.boots == {"alpha": 0, "beta": 0}
    of_a_worker: Reservation = pickle.loads(pickle.dumps(ann))
    with pytest.raises(NotOurs, match=r"this run has lost its place: host alpha .*leased to bob"):
        of_a_worker.regain()
    assert "this run has lost its place on host alpha" in capsys.readouterr().err
    bob.close()
    of_a_worker.regain()
    assert of_a_worker._place(hosts.rack.machines["beta"]) == 0
    ann.close()


def test_a_lost_place_waits_for_its_turn_again(hosts: Hosts) -> None:
    ann, bob = reserved(hosts, "ann", 600.0), reserved(hosts, "bob")
    ann.take()
    ann.leave()
    bob.take()
    regains = threading.Thread(target=ann.regain)
    regains.start()
    time.sleep(2)
    assert regains.is_alive()
    bob.close()
    regains.join(60)
    assert not regains.is_alive()
    ann.close()


def test_nobody_gets_a_machine_that_boots(hosts: Hosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even who asks for it as soon as its agent is up again, while the run that boots it does not."""
    ann, bob = reserved(hosts, "ann"), reserved(hosts, "bob", 600.0)
    monkeypatch.setattr(reservation, "AGAIN_S", 1000.0)
    ann.take()
    monkeypatch.setattr(reservation, "AGAIN_S", 2.5)
    monkeypatch.setattr(reservation, "LOOK_S", 0.1)
    monkeypatch.setattr(booted, "CLOCK_S", 5.0)
    waits = threading.Thread(target=bob.take, args=(lambda text: None,))
    waits.start()
    ours = hosts.kernels(ann, tmp_path / "notes")
    ours.ensure({"alpha": "6.1"})
    time.sleep(DOWN_S)
    assert waits.is_alive()
    with RemoteAgents(hosts.rack, Placement({"alpha": hosts.rack.machines["alpha"]}), "ann", ann.ticket):
        pass
    ours.end()
    assert hosts.boots == {"alpha": 2, "beta": 0}
    assert hosts.release == {"alpha": NEW, "beta": NEW}
    ann.close()
    waits.join(60)
    assert not waits.is_alive()
    with RemoteAgents(hosts.rack, Placement(hosts.rack.machines), "bob", bob.ticket):
        pass
    bob.close()


def test_what_a_killed_run_left_is_booted_back(hosts: Hosts) -> None:
    """And the machine is free at once."""
    hosts.release["alpha"], hosts.was["alpha"] = OLD, NEW
    lines = racks.restore(hosts.rack.path, 0.0)
    assert [line for line in lines if "booted back" in line] == [
        f"{hosts.rack.machines['alpha']}: booted back into {NEW}"
    ]
    assert hosts.boots == {"alpha": 1, "beta": 0}
    with RemoteAgents(hosts.rack, Placement(hosts.rack.machines), "bob"):
        pass
