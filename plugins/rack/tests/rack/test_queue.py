# SPDX-License-Identifier: Apache-2.0
"""Runs that wait for a rack's machines in turn, and what `testctl status` prints meanwhile."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from testctl_agent.spec.errors import TestbedError
from testctl_rack import rack_status, reservation
from testctl_rack.inventory_file import Machine, Rack
from testctl_rack.leased_agents import RemoteAgents
from testctl_rack.placement import Placement
from testctl_rack.reservation import Reservation

from plugins.rack.tests.rack.bed import Bed
from tests.playbooks import play

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.fixture
def rack(rack: Bed) -> Rack:
    """Its two hosts."""
    return rack.hosts()


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
    assert re.search(r": leased to ann since \d+ s; Linux", rack_status.rack_status(rack.path)[0][0])
    with RemoteAgents(rack, Placement(rack.machines), "ann", first.ticket):
        assert re.search(
            r": leased to ann since \d+ s, for another \d+ s; Linux", rack_status.rack_status(rack.path)[0][0]
        )
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


def asked(name: str, listen: str, keys: Path) -> tuple[int, str]:
    argv = [sys.executable, "-m", "testctl_rack.in_use", name, listen, str(keys)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    return done.returncode, done.stdout


def test_who_is_to_change_a_machine_asks_whether_a_run_has_it(rack: Rack, tmp_path: Path) -> None:
    """Also between the points of a run; a machine that does not answer is nobody's."""
    alpha = rack.machines["alpha"]
    assert asked("alpha", alpha.listen, rack.keys) == (0, "")
    with RemoteAgents(rack, Placement(rack.machines), "ann, without a place"):
        code, said = asked("alpha", alpha.listen, rack.keys)
    assert code == 3
    assert re.fullmatch(r"leased to ann, without a place since \d+ s, for another \d+ s\n", said)
    run = reserved(rack, "bob")
    run.take()
    code, said = asked("alpha", alpha.listen, rack.keys)
    assert code == 3
    assert re.fullmatch(r"leased to bob since \d+ s\n", said)
    assert asked("alpha", "127.0.0.1:9", rack.keys) == (0, "")
    assert asked("beta", alpha.listen, rack.keys) == (0, ""), "another machine's agent"
    assert asked("alpha", alpha.listen, tmp_path / "none") == (0, ""), "before the first deployment"
    run.close()


@pytest.mark.parametrize("role", ["agent not_in_use", "kernel main", "kernel absent"])
def test_a_playbook_refuses_a_machine_that_a_run_has(rack: Rack, tmp_path: Path, role: str) -> None:
    """Those of kernels end at a check of what they were given, where they go on: they are given nothing."""
    name, tasks = role.split()
    hosts = {name: {"testctl_listen": machine.listen} for name, machine in rack.machines.items()}
    given = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "testctl_keys": str(rack.keys),
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": given}}), encoding="utf-8")
    task = {"ansible.builtin.include_role": {"name": name, "tasks_from": tasks, "apply": {"check_mode": True}}}
    after = {"ansible.builtin.debug": {"msg": "changes {{ inventory_hostname }}"}}
    plays = [{"hosts": "all", "gather_facts": False, "tasks": [task, after]}]
    (tmp_path / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
    words = ("-i", str(tmp_path / "hosts.json"), str(tmp_path / "play.yml"))
    alone = {"alpha": rack.machines["alpha"]}
    with RemoteAgents(replace(rack, machines=alone), Placement(alone), "ann"):
        done = play(*words)
        said = done.in_one_line
        assert done.code == 2
        assert "alpha: want a machine that no run has; it is leased to ann since" in said
        assert "beta: want a machine that no run has" not in said
        assert "changes alpha" not in said
        assert ("changes beta" in said) == (name == "agent")
        done = play(*words, "-e", "agent_despite_lease=true")
        assert "want a machine that no run has" not in done.in_one_line
        assert ("changes alpha" in done.said) == (done.code == 0) == (name == "agent"), done.said
