# SPDX-License-Identifier: Apache-2.0
"""Fates of the plans in this repository, in the lab: just what was asked, on each kernel, in every run.

So with the testbed's program alone, and in front of two of others: one that switches, one that rewrites addresses.
"""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from testctl.records.schema import FATES
from testctl.results import Run, RunPoint, load_run

from controller.tests.report.reading import text_of
from tests.cli_commands import call

OWN = {"program": "program.json", "entries": "entries"}
DROP = FATES.index("drop")
ROOT = Path(__file__).parents[1]
PLANS = ROOT / "plans"
ENTRIES = {
    "": "",
    "l2": """
table_add forward send receiver => receiver
table_add forward send sender => sender
""",
    "router": """
table_add routes to receiver/32 => receiver receiver
table_add routes to sender/32 => sender sender
""",
}


@pytest.fixture(
    params=["", *(pytest.param(name, marks=pytest.mark.long) for name in ("l2", "router"))],
    ids=lambda name: name or "testbed's own",
)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The switch's, among the plans of a test."""
    shutil.copytree(PLANS, tmp_path / "plans")
    if name := str(request.param):
        shutil.copy(ROOT / "plugins/p4c_ebpf/tests/programs" / f"{name}.json", tmp_path / "plans" / "program.json")
        (tmp_path / "plans" / "entries").write_text(ENTRIES[name])
    return name


pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("program")]


def run(where: Path, plan: str, name: str, *sets: str) -> tuple[int, Run]:
    """The exit code and the run of a plan of this repository."""
    plans = where / "plans" if (where / "plans").exists() else PLANS
    own = [f"switch.{what}=./{file}" for what, file in OWN.items() if (plans / file).exists()]
    words = [word for given in (*sets, *own) for word in ("--set", given)]
    ended = call(where, "run", str(plans / plan), "--out", name, *words, code=None, TMPDIR=where)
    assert (where / name / "summary.json").exists(), ended.stderr
    return ended.returncode, load_run(where / name)


def packets_with(one: Run, fate: str) -> list[list[tuple[int, int]]]:
    """Of each point the (ordinal, sequence number) of the packets with that fate."""
    found = []
    for point in one.points:
        table = point.packets(["fate", "ordinal", "seq"])
        assert table is not None
        rows = [row for row in table.to_pylist() if row["fate"] == FATES.index(fate)]
        found.append([(row["ordinal"], row["seq"]) for row in rows])
    return found


def asked(one: Run) -> list[tuple[Any, ...]]:
    return [tuple(found[key] for key in ("asked", "happened", "which")) for p in one.points for found in p.fates]


def test_the_first_four_segments_are_dropped_with_tso_on_and_off(tmp_path: Path, release: str) -> None:
    kernel = f'hosts.kernel="{release}"'
    code, one = run(tmp_path, "fates.yaml", "one", kernel)
    assert (code, len(one.points)) == (0, 2), json.dumps(one.summary["expectations"], indent=1)
    assert asked(one) == [(4, 4, "1-4")] * 2
    assert packets_with(one, "drop") == [[(n, 1448 * (n - 1)) for n in range(1, 5)]] * 2
    assert "drop data 1-4 of bulk, first" in text_of(one.path / "report.html")
    code, again = run(tmp_path, "fates.yaml", "again", kernel)
    assert (code, again.digest) == (0, one.digest)


def test_a_seed_loses_the_same_segments_in_every_run(tmp_path: Path) -> None:
    code, one = run(tmp_path, "loss.yaml", "one", "bulk.bytes=20MB", "switch.fate=lose 2e-3 of bulk seed 1")
    _, again = run(tmp_path, "loss.yaml", "again", "bulk.bytes=20MB", "switch.fate=lose 2e-3 of bulk seed 1")
    _, other = run(tmp_path, "loss.yaml", "other", "bulk.bytes=20MB", "switch.fate=lose 2e-3 of bulk seed 2")
    assert code in (0, 1)  # 20 MB are too few for the plan's bounds
    lost = packets_with(one, "lose")[0]
    assert lost
    assert packets_with(again, "lose")[0] == lost
    assert [ordinal for ordinal, _ in packets_with(other, "lose")[0]] != [ordinal for ordinal, _ in lost]


def test_late_packets_are_those_asked_for_with_tso_on_and_off(tmp_path: Path, release: str) -> None:
    kernel = f'hosts.kernel="{release}"'
    code, one = run(tmp_path, "reordering.yaml", "one", kernel)
    assert (code, len(one.points)) == (0, 4), json.dumps(one.summary["expectations"], indent=1)
    assert [asked(one)[n] for n in (0, 2)] == [(3, 3, "40-42")] * 2
    drawn = asked(one)[1]
    assert drawn[0] == drawn[1] > 2
    assert asked(one)[3] == drawn
    assert [_overtaken(point) for point in one.points] == _late(one)
    code, again = run(tmp_path, "reordering.yaml", "again", kernel, "sender.tso=on")
    assert (code, len(again.points)) == (0, 2)
    digests = {point.id: point.digest for point in one.points}
    assert {point.id: point.digest for point in again.points}.items() <= digests.items()


def _late(one: Run) -> list[list[int]]:
    """Of each point the ordinals of the packets that the switch says it sent later."""
    chosen, drawn = packets_with(one, "delay"), packets_with(one, "reorder")
    return [[ordinal for ordinal, _ in (*some, *others)] for some, others in zip(chosen, drawn, strict=True)]


def _overtaken(point: RunPoint) -> list[int]:
    """The ordinals of the data packets that another one behind them overtook, by the receiver's capture."""
    table = point.packets(["where", "ordinal", "seq", "length", "out", "time_ns", "left_ns"])
    assert table is not None
    rows = [row for row in table.to_pylist() if row["length"]]
    sent = [row for row in rows if row["where"] == "switch"]
    assert [row["ordinal"] for row in sent] == list(range(1, len(sent) + 1))
    leaving = sorted(sent, key=lambda row: row["left_ns"])
    _arrived(leaving, [row for row in rows if row["where"] == "receiver" and not row["out"]])
    later = [row["ordinal"] for row in leaving]
    return sorted(ordinal for place, ordinal in enumerate(later) if any(one > ordinal for one in later[:place]))


def _arrived(leaving: list[dict[str, Any]], came: list[dict[str, Any]]) -> None:
    """Each packet arrives when it left, in that order: at most the reading of the clock later that it met."""
    assert [row["seq"] for row in came] == [row["seq"] for row in leaving]
    assert {row["time_ns"] - gone["left_ns"] for row, gone in zip(came, leaving, strict=True)} <= set(range(256))


def test_a_late_packet_keeps_no_other_waiting(tmp_path: Path) -> None:
    fate = 'switch.fate="delay data 5-6,20 of bulk by 3ms; delay acks 9-10 of bulk by 3ms"'
    slow = ("bulk.rate=20mbit", "bulk.burst=1448", "bulk.bytes=100kB", "switch.delay=0ms", "sender.tso=on", fate)
    code, one = run(tmp_path, "reordering.yaml", "one", *slow)
    assert (code, len(one.points)) == (1, 2)  # the plan wants all its bytes
    assert asked(one) == [(3, 3, "5-6, 20"), (2, 2, "9-10")] * 2
    for point in one.points:
        table = point.packets(["where", "seq", "out", "time_ns", "left_ns", "direction"])
        assert table is not None
        for direction, host in enumerate(("receiver", "sender")):
            rows = [row for row in table.to_pylist() if row["direction"] == direction]
            leaving = sorted((row for row in rows if row["where"] == "switch"), key=lambda row: row["left_ns"])
            _arrived(leaving, [row for row in rows if row["where"] == host and not row["out"]])


CHOSEN = [(3, 3, "20-22"), (1, 1, "60"), (1, 1, "80"), (1, 1, "100"), (2, 2, "120, 140"), (1, 1, "30")]


def test_changed_packets_are_those_asked_for_with_tso_on_and_off(tmp_path: Path, release: str) -> None:
    kernel = f'hosts.kernel="{release}"'
    code, one = run(tmp_path, "packet_changes.yaml", "one", kernel)
    assert (code, len(one.points)) == (0, 4), json.dumps(one.summary["expectations"], indent=1)
    for number, point in enumerate(one.points):
        done = [(found["asked"], found["happened"], found["which"]) for found in point.fates]
        if number % 2 == 0:
            assert done == CHOSEN
        assert all(happened == wanted > 0 for wanted, happened, _ in done)
        wrong = [found for found in point.fates if found["rule"].partition(" ")[0] in ("corrupt", "trim")]
        assert _dropped_by_checksum(point) == sum(found["happened"] for found in wrong)
        assert _exchanged(point) == (["120, 121", "140, 141"] if number % 2 == 0 else [])
    code, again = run(tmp_path, "packet_changes.yaml", "again", kernel, "sender.tso=on")
    assert (code, len(again.points)) == (0, 2)
    digests = {point.id: point.digest for point in one.points}
    assert {point.id: point.digest for point in again.points}.items() <= digests.items()


def _dropped_by_checksum(point: RunPoint) -> int:
    records = point.records()
    assert records is not None
    return int(records.counters["receiver"]["snmp"].get("Tcp.InCsumErrors", 0))


def _exchanged(point: RunPoint) -> list[str]:
    """Which neighbours among the data packets left the switch in the other order, and so arrived."""
    table = point.packets(["where", "ordinal", "seq", "length", "out", "time_ns", "left_ns", "fate"])
    assert table is not None
    rows = [row for row in table.to_pylist() if row["length"]]
    leaving = sorted((row for row in rows if row["where"] == "switch"), key=lambda row: row["left_ns"])
    came = [row for row in rows if row["where"] == "receiver" and not row["out"]]
    trimmed = {row["ordinal"] for row in leaving if row["fate"] == FATES.index("trim")}
    _arrived([row for row in leaving if row["ordinal"] not in trimmed], came)
    order = [row["ordinal"] for row in leaving]
    return [f"{after}, {before}" for before, after in pairwise(order) if after < before]


@pytest.mark.parametrize("program", [""], indirect=True)
def test_an_ecn_threshold_marks_from_its_byte_on(tmp_path: Path) -> None:
    code, one = run(tmp_path, "ecn_threshold.yaml", "one")
    assert code == 0, json.dumps(one.summary["expectations"], indent=1)


def test_what_did_not_happen_as_asked_makes_a_point_invalid(tmp_path: Path) -> None:
    kernel = 'hosts.kernel="6.12"'
    fate = 'switch.fate="drop data 45-48 of bulk, first"'
    code, one = run(tmp_path, "fates.yaml", "one", kernel, "sender.tso=on", fate)
    assert code == 3
    assert one.points[0].verdict == "invalid"
    reason = "wanted: drop data 45-48 of bulk, first; happened: 45-46; not: 47-48 (the flow had 46 first transmissions)"
    assert reason in one.points[0].reason


REVERSED = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [bulk, reverse, on]
  - [bulk, bytes, 1MB]
  - [switch, rate, 100mbit]
  - [switch, delay, 10ms]
  - [switch, fate, ["drop data 5 of bulk; drop acks 3 of bulk; swap data 40 of bulk",
     "drop bytes 1448-2000 of bulk, first", "lose 0.01 of bulk seed 3"]]
"""


def test_data_of_a_reversed_flow_is_what_its_server_sends(tmp_path: Path) -> None:
    (tmp_path / "plans" / "reversed.yaml").write_text(REVERSED)
    code, one = run(tmp_path, "reversed.yaml", "one")
    assert code == 0
    found = [[(action["asked"], action["happened"], action["which"]) for action in point.fates] for point in one.points]
    assert found[0] == [(1, 1, "5"), (1, 1, "40"), (1, 1, "3")]
    assert found[1] == [(1, 1, "1448")]
    assert found[2][0][0] == found[2][0][1] > 2
    table = one.points[0].packets(["fate", "direction", "ordinal", "length"])
    assert table is not None
    rows = [row for row in table.to_pylist() if row["fate"] == DROP]
    assert {(row["direction"], row["ordinal"], row["length"] > 0) for row in rows} == {(1, 5, True), (0, 3, False)}
