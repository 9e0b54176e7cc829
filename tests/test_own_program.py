# SPDX-License-Identifier: Apache-2.0
"""A plan whose switch runs a P4 program of the user's, in the lab: links, packet actions and telemetry are as ever."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from testctl.results import load_run

pytestmark = pytest.mark.lab

pytest.importorskip("p4c_ebpf")
PROGRAMS = Path(__file__).parents[1] / "plugins" / "p4c_ebpf" / "tests" / "programs"
BY_MAC = """
# simple_switch_CLI
table_add forward send receiver => receiver
table_add ingress.forward ingress.send 02:00:00:00:00:01 => sender
"""
BY_ADDRESS = {
    "target": "bmv2",
    "table_entries": [
        {
            "table": "ingress.routes",
            "match": {"hdr.ipv4.dst": [host, 32]},
            "action_name": "ingress.to",
            "action_params": {"mac": host, "port": host},
        }
        for host in ("sender", "receiver")
    ],
}
OWN = "  - [switch, program, ./{program}.json]\n  - [switch, entries, ./entries]\n"
ACTIONS = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
{own}  - [hosts, cc, cubic]
  - [hosts, net.ipv4.tcp_ecn, 1]
  - [switch:receiver, rate, 100mbit]
  - [switch:receiver, buffer, 100kB]
  - [switch, delay, 5ms]
  - [switch, fate, [none, "drop data 20-22 of bulk; mark data 30 of bulk; echo acks 9 of bulk",
                    "lose 2% of bulk burst 3 seed 1; reorder 1% of bulk by 2ms seed 4", "swap data 20,30 of bulk",
                    "duplicate data 20,30 of bulk; delay data 40 of bulk by 3ms",
                    "corrupt data 20 of bulk; corrupt header 0.5% of bulk seed 3; trim data 40 of bulk"]]
  - [bulk, bytes, 300kB]
"""
LINKS = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
{own}  - [hosts, cc, bbr]
  - [switch:receiver, rate, "100mbit; 100ms 20mbit; 300ms 50mbit"]
  - [switch:receiver, delay, "10ms; 200ms 3ms"]
  - [switch:receiver, jitter, "normal 5ms 1ms seed 3, in order"]
  - [switch:receiver, down, "250ms-300ms"]
  - [switch:receiver, largest, [none, "1500B; 200ms 900B icmp"]]
  - [switch:receiver, buffer, 100kB]
  - [bulk, bytes, 600kB]
"""


def points(where: Path, plan: str, program: str = "", entries: str = "") -> list[dict[str, Any]]:
    """The points of a run of a plan, whose switch has a program of PROGRAMS, or the testbed's own."""
    where.mkdir()
    if program:
        shutil.copy(PROGRAMS / f"{program}.json", where)
        (where / "entries").write_text(entries)
    (where / "plan.yaml").write_text(plan.format(own=OWN.format(program=program) if program else ""))
    argv = [sys.executable, "-m", "testctl.cli.main", "run", "plan.yaml", "--out", "run"]
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found: list[dict[str, Any]] = json.loads((where / "run" / "summary.json").read_text())["points"]
    return found


@pytest.mark.parametrize("plan", [ACTIONS, LINKS], ids=["packet actions", "links that change"])
def test_a_program_that_only_switches_sends_every_packet_as_the_testbeds_own(tmp_path: Path, plan: str) -> None:
    """To the nanosecond: the digest of a point is that of its packets at both hosts, and their times."""
    theirs, ours = points(tmp_path / "theirs", plan, "l2", BY_MAC), points(tmp_path / "ours", plan)
    assert [point["digest"] for point in theirs] == [point["digest"] for point in ours]
    assert len({point["digest"] for point in ours}) == len(ours)


def test_packet_actions_happen_as_wanted_in_front_of_a_router(tmp_path: Path) -> None:
    """It rewrites addresses, counts down the TTL, and its checksums are right: the points pass."""
    points(tmp_path / "router", ACTIONS, "router", json.dumps(BY_ADDRESS))
    wanted = [action for point in load_run(tmp_path / "router" / "run").points for action in point.fates]
    assert len(wanted) == 11
    assert all(action["asked"] == action["happened"] for action in wanted), wanted
    assert sum(action["happened"] > 0 for action in wanted) >= 9
