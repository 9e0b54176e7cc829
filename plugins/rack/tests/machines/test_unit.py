# SPDX-License-Identifier: Apache-2.0
"""The agent's unit: what an agent does in its sandbox, when systemd starts it again, what it can't.

The same rack as test_rack_of_machines.py; each test leaves the unit running as it was deployed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents.tests.daemon.daemons import Caller
from agents.tests.daemon.root_capabilities import check_all
from plugins.rack.tests.machines.machines import Machines, eventually
from plugins.rack.tests.machines.taken_over import CALLS, FILES, PROGRAMS

UNIT = "testctl-agent.service"
UNITS, STATE = "/etc/systemd/system", "/var/lib/testctl/agent"
TAKEN = f"""\
sed -e 's/^Type=notify/Type=oneshot/; /^Restart=/d' \\
    -e 's#^ExecStart=.*#ExecStart=/usr/bin/python3 /opt/taken_over.py {STATE}/taken.json#' \\
    -e 's#^RuntimeDirectory=.*#RuntimeDirectory=testctl-taken#' {UNITS}/{UNIT} >{UNITS}/taken.service
systemctl daemon-reload && systemctl start taken.service && cat {STATE}/taken.json
"""
pytestmark = [pytest.mark.alone, pytest.mark.machines, pytest.mark.timeout(1800), pytest.mark.flaky(reruns=0)]


def done(rack: Machines, command: str) -> str:
    """What a command of alpha printed; it must not fail."""
    found = rack.ssh("alpha", command)
    assert found.code == 0, found.said
    return found.said


def shown(rack: Machines, *names: str) -> list[str]:
    """Properties of the unit."""
    return [done(rack, f"systemctl show --value --property={name} {UNIT}").strip() for name in names]


def test_an_agent_does_all_its_work_in_the_sandbox(rack: Machines) -> None:
    """MTU, sysctls, routes, GRO, HTB, congestion controls, captures, BPF; and all is restored."""
    with rack.channel("alpha") as channel:
        check_all(Caller(channel), "eth1", bpf=True)


def test_a_killed_agent_is_started_again_and_restores(rack: Machines) -> None:
    with rack.channel("alpha") as channel:
        caller = Caller(channel)
        before = caller.facts()
        caller.acquire()
        caller.set(mtu=1400, tcp_sack=0)
        restarts = shown(rack, "NRestarts")
        done(rack, f"systemctl kill --kill-who=main --signal=KILL {UNIT}")
        eventually(lambda: shown(rack, "NRestarts") != restarts, "systemd starts it again")
    rack.answers("alpha")
    assert rack.attest("alpha") == before


def test_a_stuck_agent_is_started_again(rack: Machines) -> None:
    assert shown(rack, "WatchdogUSec") == ["1min"]
    quick = f"/run/systemd/system/{UNIT}.d"
    lines = "[Service]\\nWatchdogSec=10\\nTimeoutAbortSec=1\\n"
    done(rack, f"mkdir {quick} && printf '{lines}' >{quick}/quick.conf && systemctl daemon-reload")
    try:
        done(rack, f"systemctl restart {UNIT} && sleep 15")
        assert shown(rack, "NRestarts") == ["0"], "one that lives says so"
        done(rack, f"systemctl kill --kill-who=main --signal=STOP {UNIT}")
        eventually(lambda: shown(rack, "NRestarts") != ["0"], "systemd starts it again")
    finally:
        done(rack, f"rm -r {quick} && systemctl daemon-reload")
    rack.answers("alpha")


def test_a_wrong_configuration_is_not_tried_for_ever(rack: Machines) -> None:
    config, kept = "/etc/testctl/agent.json", "/run/agent.json"
    done(rack, f'cp -p {config} {kept} && sed -i \'s/"kind": *"host"/"kind": "fridge"/\' {config}')
    try:
        assert rack.ssh("alpha", f"grep -q fridge {config} && systemctl restart {UNIT}").code == 1
        assert shown(rack, "ActiveState", "ExecMainStatus", "NRestarts") == ["failed", "2", "0"]
    finally:
        done(rack, f"mv {kept} {config} && systemctl restart {UNIT}")
    rack.answers("alpha")


def test_it_has_descriptors_for_more_than_a_stranger_takes(rack: Machines) -> None:
    limits = done(rack, f"cat /proc/$(systemctl show -P MainPID {UNIT})/limits")
    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    assert line.split()[3:5] == ["65536", "65536"]


def test_an_agent_that_was_taken_over_stays_in_its_sandbox(rack: Machines) -> None:
    """The unit's own lines, with another program."""
    here = Path(__file__).parent
    rack.send("alpha", here, ["taken_over.py"], "/opt")
    try:
        found = json.loads(done(rack, TAKEN))
        assert done(rack, "find / -xdev -name testctl-escaped") == ""
    finally:
        done(rack, f"rm -f /opt/taken_over.py {UNITS}/taken.service {STATE}/taken.json {STATE}/own")
        done(rack, "systemctl daemon-reload")
    assert found.pop("own") == "done", "it may write to its own directory"
    assert set(found) == {*CALLS, *FILES, *PROGRAMS} - {"own"}
    assert [name for name, said in found.items() if said == "done"] == []
    refusals = ("Operation not permitted", "Function not implemented")
    assert {name: found[name] for name in CALLS if found[name] not in refusals} == {}
    assert rack.attest("alpha"), "the agent itself is still there"
