# SPDX-License-Identifier: Apache-2.0
"""A plan whose switch runs a P4 program of the user's, in the lab: links, packet actions and telemetry are as ever."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from testctl.results import RunPoint
from testctl_agent.spec.p4_program import P4C

from controller.tests.report.reading import text_of
from tests.cli_commands import call
from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

pytest.importorskip("p4c_ebpf")
ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "plugins" / "p4c_ebpf" / "tests" / "programs"
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
                    "lose 2% of bulk burst 3 seed 1; reorder 1% of bulk by 2ms seed 4",
                    "swap data 20,30 of bulk; drop data 31 of bulk",
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


def points(where: Path, plan: str, program: str = "", entries: str = "", code: int = 0) -> Sequence[RunPoint]:
    """The points of a run of a plan, whose switch has a program of PROGRAMS, or the testbed's own."""
    where.mkdir()
    if program:
        shutil.copy(PROGRAMS / f"{program}.json", where)
        (where / "entries").write_text(entries)
    return run_of(where, plan.format(own=OWN.format(program=program) if program else ""), code=code).points


@pytest.mark.parametrize(
    "plan",
    [pytest.param(ACTIONS, id="packet actions"), pytest.param(LINKS, id="links that change", marks=pytest.mark.long)],
)
def test_a_program_that_only_switches_sends_every_packet_as_the_testbeds_own(tmp_path: Path, plan: str) -> None:
    """To the nanosecond: the digest of a point is that of its packets at both hosts, and their times."""
    theirs, ours = points(tmp_path / "theirs", plan, "l2", BY_MAC), points(tmp_path / "ours", plan)
    assert [point.digest for point in theirs] == [point.digest for point in ours]
    assert len({point.digest for point in ours}) == len(ours)


def test_packet_actions_happen_as_wanted_in_front_of_a_router(tmp_path: Path) -> None:
    """It rewrites addresses, counts down the TTL, and its checksums are right: the points pass."""
    found = points(tmp_path / "router", ACTIONS, "router", json.dumps(BY_ADDRESS))
    wanted = [action for point in found for action in point.fates]
    assert len(wanted) == 12
    assert all(action["asked"] == action["happened"] for action in wanted), wanted
    assert sum(action["happened"] > 0 for action in wanted) >= 10


@pytest.mark.parametrize("program", ["", "l2"])
def test_a_packet_that_is_too_long_to_be_kept_counts_as_unchanged(tmp_path: Path, program: str) -> None:
    plan = """
topology: pair
flows: {{bulk: sender -> receiver}}
tuples:
{own}  - [hosts, mtu, 20000]
  - [switch, mtu, 20000]
  - [switch, fate, ["swap data 20 of bulk", "duplicate data 20 of bulk"]]
  - [bulk, bytes, 1MB]
"""
    swapped, doubled = points(tmp_path / "long", plan, program, BY_MAC, code=3)
    wrong = [point.reason for point in ((swapped, doubled) if program else (swapped,))]
    assert all("of bulk; happened: none; not: 20 (the switch did not apply it)" in reason for reason in wrong), wrong
    assert doubled.verdict == ("invalid" if program else "pass")


EXAMPLE = ROOT / "examples" / "own_program"


def example(where: Path, *sets: str) -> Sequence[RunPoint]:
    """The points of the example's plan, changed as --set changes it."""
    return run_of(where.parent, EXAMPLE / "plan.yaml", *sets, out=where.name).points


def test_the_example_passes_and_waits_are_the_same_on_a_link_that_changes(tmp_path: Path) -> None:
    """Its marks hang on deq_timedelta, which each of the two models of a port computes in its own way."""
    steady = example(tmp_path / "steady")
    changing = example(tmp_path / "changing", 'switch:receiver.rate="50mbit; 20s 10mbit"')
    assert [point.digest for point in changing] == [point.digest for point in steady]
    assert len({point.digest for point in steady}) == 2
    for point in steady:
        marks = point.metrics["bulk"]["ce_marks"]
        assert point.programs == {"switch": {"registers": {"Mark.marked": {"2": marks}}, "counters": {}}}
    assert "register Mark.marked" in text_of(tmp_path / "steady" / "report.html")
    file = point.path / "records.json"
    file.write_text(file.read_text().replace('"Mark.marked": {', '"Mark.marked": 5, "other": {'))
    done = call(tmp_path, "show", "steady", point.id, code=2)
    assert "records.json: want an object at counters.switch.program.registers.Mark.marked; got 5" in done.stderr


@pytest.mark.skipif(not (os.environ.get(P4C) or shutil.which("p4c-bm2-ss")), reason="want p4c-bm2-ss")
def test_p4_is_compiled_where_there_is_p4c(tmp_path: Path) -> None:
    """And its first error has its place."""
    (given,) = (point.digest for point in example(tmp_path / "json", "switch.entries=./after_1ms.txt"))
    more = ("switch.program=./mark.p4", "switch.entries=./after_1ms.txt")
    assert [point.digest for point in example(tmp_path / "p4", *more)] == [given]
    (tmp_path / "wrong.p4").write_text((EXAMPLE / "mark.p4").read_text().replace("bit<16> kind;", "bit<16> king;"))
    done = call(tmp_path, "p4", "check", str(tmp_path / "wrong.p4"), code=2)
    assert "wrong.p4(42): [--Werror=type-error] error: Field kind is not a member" in done.stderr


def test_the_examples_json_is_that_of_its_source() -> None:
    """p4c-bm2-ss --arch v1model -o mark.json mark.p4 && sha256sum mark.p4 > sources.sha256, where p4c is installed."""
    digest, _ = (EXAMPLE / "sources.sha256").read_text().split()
    assert hashlib.sha256((EXAMPLE / "mark.p4").read_bytes()).hexdigest() == digest


def test_counters_have_counted_the_packets_of_the_telemetry(tmp_path: Path) -> None:
    plan = "topology: pair\nflows: {{bulk: sender -> receiver}}\ntuples:\n{own}  - [bulk, bytes, 100kB]\n"
    (point,) = points(tmp_path / "counted", plan, "counters", BY_MAC)
    table = point.packets(["where", "direction"])
    assert table is not None
    passed = Counter(row["direction"] for row in table.to_pylist() if row["where"] == "switch")
    counted = {
        name: {at: packets for at, (packets, _) in cells.items()}
        for name, cells in point.programs["switch"]["counters"].items()
    }
    assert passed[0] > passed[1] > 0
    assert counted == {
        "ingress.port_in": {"1": passed[0], "2": passed[1]},
        "egress.port_out": {"1": passed[1], "2": passed[0]},
    }
