# SPDX-License-Identifier: Apache-2.0
"""A switch's telemetry as rows of the packets table, and what is refused of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics import instruments_agree
from testctl.records import PACKETS, Records, RecordsError, load_raw
from testctl.records.schema import FATES

from controller.tests.support.synthetic import Conversation, bulk, save, write_point
from controller.tests.support.synthetic_telemetry import befall, passage, write_telemetry

TAKEN = ("time_ns", "flow", "conn", "direction", "seq", "ack", "length", "wire_bytes", "flags", "ecn", "window", "segs")


def rows(records: Records, where: str, direction: int = 0) -> dict[str, list[Any]]:
    codes, names = records.codes("where")
    chosen = (codes == names.index(where)) & (records.column("direction") == direction)
    return {name: records.packets.column(name).to_numpy()[chosen].tolist() for name in PACKETS.names}


def talk_with_loss() -> Conversation:
    talk = Conversation(isn=2**32 - 2000)
    for n in range(4):
        talk.data(100 + n, 1448 * n, arrives=n != 1)
    talk.ack(130, 1448)
    talk.data(200, 1448)
    talk.ack(230, 1448 * 4)
    return talk


def test_rows_say_what_came_and_what_became_of_it(tmp_path: Path) -> None:
    captures = talk_with_loss().captures()
    write_point(tmp_path, captures)
    switched = passage(captures["sender"], latency_ns=10_000, queue_bytes=3000)
    befall(switched, "drop", np.array([3]))
    write_telemetry(tmp_path, switched)
    records = load_raw(tmp_path)
    assert records.switches == ["switch"]
    assert records.packets.schema == PACKETS
    seen, sent = rows(records, "switch"), rows(records, "sender")
    for name in TAKEN:
        assert seen[name] == sent[name], name
    assert seen["seq"] == [-1, 0, 1448, 2896, 4344, 1448]
    assert seen["ordinal"] == [0, 1, 2, 3, 4, 5]
    assert seen["first_ordinal"] == [0, 1, 2, 3, 4, 0]
    assert seen["fate"] == [0, 0, FATES.index("drop"), 0, 0, 0]
    assert seen["left_ns"] == [10_000, 110_000, -1, 112_000, 113_000, 210_000]
    assert seen["queue_bytes"] == [3000, 3000, -1, 3000, 3000, 3000]
    assert seen["retrans"] == [False, False, False, False, False, True]
    assert set(seen["out"]) == {False}
    assert set(sent["ordinal"]) == set(sent["left_ns"]) == {-1}
    assert Records.load(save(records, tmp_path / "saved")).digest() == records.digest()


def test_fates_are_what_happened_and_not_what_was_asked(tmp_path: Path) -> None:
    talk = Conversation()
    for n, ecn in enumerate((2, 2, 0, 3, 3, 2, 2, 2)):
        talk.data(100 + n, 1448 * n, ecn=ecn)
    captures = talk.captures()
    write_point(tmp_path, captures)
    switched = passage(captures["sender"])
    first = int(np.flatnonzero(switched["kind"] == 1)[0])
    befall(switched, "mark", np.array([first]))
    befall(switched, "queue_mark", np.array([first + 1]))
    switched["fate"][first + 2] = 2  # asked for, and not ECN-capable
    befall(switched, "mark", np.array([first + 3]))
    befall(switched, "clear", np.array([first + 4]))
    switched["fate"][first + 5] = 2
    befall(switched, "buffer_drop", np.array([first + 5]))
    befall(switched, "other_drop", np.array([first + 6]))
    befall(switched, "lose", np.array([first + 7]))
    write_telemetry(tmp_path, switched)
    found = [FATES[code] for code in rows(load_raw(tmp_path), "switch")["fate"][1:]]
    assert found == ["mark", "queue_mark", "none", "mark", "clear", "buffer_drop", "other_drop", "lose"]


def test_what_a_switch_counts_as_its_own_is_not_held_against_it(tmp_path: Path) -> None:
    captures = bulk(3000)
    write_point(tmp_path, captures)
    write_telemetry(tmp_path, passage(captures["sender"]))
    for when in ("before", "after"):
        path = tmp_path / "raw" / "switch" / f"counters_{when}.json"
        path.write_text(json.dumps({"snmp": {"Tcp.InSegs": 0}}))
    assert instruments_agree(load_raw(tmp_path)) == []


def test_packets_of_no_flow_are_left_out(tmp_path: Path) -> None:
    captures = bulk(10)
    write_point(tmp_path, captures)
    switched = passage(captures["sender"])
    switched["flow"][-1], switched["flow"][-2] = 0, 99
    write_telemetry(tmp_path, switched)
    records = load_raw(tmp_path)
    assert len(rows(records, "switch")["seq"]) + len(rows(records, "switch", 1)["seq"]) == len(switched["flow"]) - 2


def test_damage_is_said(tmp_path: Path) -> None:
    captures = bulk(10)
    write_point(tmp_path, captures)
    write_telemetry(tmp_path, passage(captures["sender"]), lost=3)
    file = tmp_path / "raw" / "switch" / "telemetry" / "telemetry.bin"
    whole = file.read_bytes()
    assert any("lacks 3 records" in note for note in load_raw(tmp_path).notes)
    file.write_bytes(whole + b"xyz")
    assert any("ends within a record" in note for note in load_raw(tmp_path).notes)
    file.write_bytes(whole[: len(whole) // 2 // 8 * 8])
    with pytest.raises(RecordsError, match="records of 56 bytes, as reported; got"):
        load_raw(tmp_path)
    outcome = tmp_path / "raw" / "outcome.json"
    document = json.loads(outcome.read_text())
    for layout, message in (
        (None, "outcome: collected of switch: want a list at layout; got None"),
        ([{"name": "flow", "offset": 0, "bytes": 2}], "want fields arrival_ns"),
    ):
        document["collected"]["switch"]["telemetry"] = {"layout": layout}
        outcome.write_text(json.dumps(document))
        with pytest.raises(RecordsError, match=message):
            load_raw(tmp_path)
