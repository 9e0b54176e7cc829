# SPDX-License-Identifier: Apache-2.0
"""The agent's unit under a real systemd: what an agent does in its sandbox, and what one that was taken over can't."""

from __future__ import annotations

import json
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testctl_agent.daemon import agent_pb2 as pb

from agents.tests.daemon.daemons import Caller, calling
from agents.tests.daemon.root_capabilities import check_all
from plugins.rack.tests.systemd.booted import Machine, booted, rendered, tgen
from plugins.rack.tests.systemd.taken_over import CALLS, FILES, PROGRAMS

UNIT = "testctl-agent.service"
STATE = "/var/lib/testctl/agent"
CONFIG = {
    "name": "alpha", "kind": "host", "devices": {"alpha": "eth0"}, "listen": f"unix:{STATE}/alpha.sock", "lease": True,
    "workdir": f"{STATE}/work", "journal": f"{STATE}/journal.jsonl",
}  # fmt: skip
PROGRAM = "#!/usr/bin/python3\nimport sys\nfrom testctl_agent.main import main\nsys.exit(main())\n"
PATHS = "PYTHONPATH=/opt/testctl-agent/src:/opt/testctl-agent/site\n"
pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """With what the role puts on a host; the agent does not run yet."""
    with booted(tmp_path_factory.mktemp("boot")) as found:
        found.run("useradd", "--system", "--no-create-home", "--user-group", "testctl")
        shutil.copy2(tgen(), found.root / "opt" / "testctl-agent" / "tgen")
        found.write("/opt/testctl-agent/venv/bin/testctl-agent", PROGRAM, 0o755)
        found.write("/etc/testctl/agent.json", json.dumps(CONFIG))
        found.write("/etc/testctl/environment", rendered("environment.j2") + PATHS)
        found.write(f"/etc/systemd/system/{UNIT}", rendered("unit.service.j2"))
        for folder in ("/var/lib/testctl/agent", "/var/log/testctl"):
            found.run("install", "-d", "-m", "700", "-o", "testctl", "-g", "testctl", folder)
        found.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "far")
        for words in ("addr add 10.0.0.1/16 dev eth0", "link set far up", "link set eth0 up", "link set lo up"):
            found.run("ip", *words.split())
        found.run("systemctl", "daemon-reload")
        yield found


@pytest.fixture(scope="module")
def agent(machine: Machine) -> Machine:
    machine.run("systemctl", "start", UNIT)
    return machine


@pytest.fixture
def caller(agent: Machine) -> Iterator[Caller]:
    with calling(f"unix:{agent.root}{STATE}/alpha.sock") as found:
        yield found


def eventually(agent: Machine, what: Callable[[], bool]) -> None:
    """Wait for what needs as long as it needs, at most the test's own time."""
    while not what():
        agent.run("sleep", "0.2")


def test_an_agent_does_all_its_work_in_the_sandbox(caller: Caller) -> None:
    """MTU, sysctls, routes, GRO, HTB, congestion controls, captures, BPF; and all is restored."""
    check_all(caller, bpf=True)


def test_a_killed_agent_is_started_again_and_restores(agent: Machine, caller: Caller) -> None:
    before = caller.facts()
    caller.acquire()
    caller.set(mtu=1400, tcp_sack=0)
    restarts = agent.shown(UNIT, "NRestarts")
    agent.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", UNIT)
    eventually(agent, lambda: agent.shown(UNIT, "NRestarts") != restarts and agent.shown(UNIT, "SubState") == "running")
    with calling(f"unix:{agent.root}{STATE}/alpha.sock") as again:
        assert again.facts() == before


def test_a_stuck_agent_is_started_again(agent: Machine) -> None:
    assert agent.shown(UNIT, "WatchdogUSec") == "1min"
    agent.write(f"/run/systemd/system/{UNIT}.d/quick.conf", "[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n")
    agent.run("systemctl", "daemon-reload")
    agent.run("systemctl", "restart", UNIT)
    agent.run("sleep", "5")
    assert agent.shown(UNIT, "NRestarts") == "0", "one that lives says so"
    agent.run("systemctl", "kill", "--kill-who=main", "--signal=STOP", UNIT)
    eventually(agent, lambda: agent.shown(UNIT, "NRestarts") != "0" and agent.shown(UNIT, "SubState") == "running")
    (agent.root / f"run/systemd/system/{UNIT}.d/quick.conf").unlink()
    agent.run("systemctl", "daemon-reload")


def test_a_wrong_configuration_is_not_tried_for_ever(agent: Machine) -> None:
    agent.write("/etc/testctl/agent.json", json.dumps(CONFIG | {"kind": "fridge"}))
    agent.run("systemctl", "restart", UNIT, check=False)
    assert agent.shown(UNIT, "ActiveState") == "failed"
    assert (agent.shown(UNIT, "ExecMainStatus"), agent.shown(UNIT, "NRestarts")) == ("2", "0")
    agent.write("/etc/testctl/agent.json", json.dumps(CONFIG))
    agent.run("systemctl", "restart", UNIT)


def test_it_has_descriptors_for_more_than_a_stranger_takes(agent: Machine) -> None:
    pid = agent.shown(UNIT, "MainPID")
    (limit,) = re.findall(r"^Max open files +(\d+)", agent.run("cat", f"/proc/{pid}/limits"), re.MULTILINE)
    assert agent.shown(UNIT, "LimitNOFILE") == "65536"
    assert int(limit) in (65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]), "that, or what this root may have"


def test_an_agent_that_was_taken_over_stays_in_its_sandbox(machine: Machine) -> None:
    """The unit's own lines, with another program."""
    program = Path(__file__).with_name("taken_over.py").read_text(encoding="utf-8")
    machine.write("/opt/testctl-agent/taken_over.py", program)
    text = rendered("unit.service.j2").replace("Type=notify", "Type=oneshot").replace("Restart=on-failure\n", "")
    start = f"ExecStart=/usr/bin/python3 /opt/testctl-agent/taken_over.py {STATE}/taken.json"
    text = re.sub("ExecStart=.*", start, text).replace(
        "RuntimeDirectory=testctl/cc testctl/ports testctl/ptp", "RuntimeDirectory=testctl-taken"
    )
    machine.write("/etc/systemd/system/taken.service", text)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "taken.service")
    found = json.loads((machine.root / STATE.lstrip("/") / "taken.json").read_text(encoding="utf-8"))
    assert found.pop("own") == "done", "it may write to its own directory"
    assert set(found) == {*CALLS, *FILES, *PROGRAMS} - {"own"}
    assert [name for name, said in found.items() if said == "done"] == []
    refusals = ("Operation not permitted", "Function not implemented")
    assert {name: found[name] for name in CALLS if found[name] not in refusals} == {}
    assert not list(machine.root.glob("*/**/testctl-escaped"))
    assert "alpha" in caller_name(machine)


def caller_name(machine: Machine) -> str:
    """That the agent itself is still there."""
    machine.run("systemctl", "start", UNIT)
    with calling(f"unix:{machine.root}{STATE}/alpha.sock") as caller:
        return str(caller.call("Describe", pb.DescribeRequest()).name)
