# SPDX-License-Identifier: Apache-2.0
"""What reached the receiver's capture and not its TCP, and what never reached it at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics import analyse
from testctl.metrics.stalls.table import Stall, flow_stalls
from testctl.records import Records, load_raw
from testctl.records.schema import RST

from controller.tests.support.synthetic import T0_NS, Conversation, write_point

MSS = 1448
WAIT_US = 250_000
ENDS = ("sender", "receiver")
NO_PROBES = {"sender": {"net.ipv4.tcp_early_retrans": 0}}


def load(tmp_path: Path, talk: Conversation, length_us: float = 300_000) -> Records:
    write_point(tmp_path, talk.captures(), settings=NO_PROBES)
    outcome = tmp_path / "raw" / "outcome.json"
    ran = {"end_ns": T0_NS + int(length_us * 1000), "collected": {end: {"capture": {}} for end in ENDS}}
    outcome.write_text(json.dumps(json.loads(outcome.read_text()) | ran))
    return load_raw(tmp_path)


def values(records: Records) -> dict[str, Any]:
    return dict(analyse(records).metrics["bulk"])


def causes(records: Records) -> list[tuple[str, str, int, int]]:
    def known(stall: Stall) -> tuple[str, str, int, int]:
        return stall.cause, stall.ended_by, stall.evidence.lost_bytes, stall.evidence.owed_bytes

    return [known(stall) for stall in flow_stalls(records, "bulk")]


def black_hole(opened: bool) -> Conversation:
    """Two packets that never arrive, and the first of them again."""
    talk = Conversation(delay_us=10_000, hello=opened)
    talk.data(20_000, 0, arrives=False)
    talk.data(20_001, MSS, arrives=False)
    talk.data(20_001 + WAIT_US, 0, arrives=False)
    return talk


@pytest.mark.parametrize("opened", [True, False], ids=["a SYN arrived", "nothing arrived"])
def test_all_packets_of_a_black_hole_are_lost(tmp_path: Path, opened: bool) -> None:
    records = load(tmp_path, black_hole(opened))
    got = values(records)
    assert (got["packets_sent"], got["packets_lost"], got["loss_rate"]) == (3, 3, 1)
    assert (got["retransmission_timeouts"], got["stall_rto_count"]) == (1, 1)
    assert (got["recoveries"], got["recovery_timeouts"]) == (0, 0)


def dropped(answer: int | None) -> Conversation:
    """Packets 1 to 3 arrive and are not acknowledged until 1 has left again; the next ACK is `answer`."""
    talk = Conversation(delay_us=1000)
    for n in range(4):
        talk.data(3000 + n, MSS * n)
    talk.ack(4010, MSS)
    talk.data(3000 + WAIT_US, MSS)
    if answer is not None:
        talk.ack(4000 + WAIT_US, answer)
    return talk


@pytest.mark.parametrize(
    ("answer", "length_us", "wanted"),
    [
        (4 * MSS, 0, ("ack_owed", "rto", 0, 3 * MSS)),
        (2 * MSS, 0, ("rto", "rto", 2 * MSS, MSS)),
        (None, 4001 + WAIT_US, ("ack_owed", "rto", 0, 3 * MSS)),
        (None, 9000 + WAIT_US, ("rto", "rto", 3 * MSS, 0)),
    ],
    ids=["took all", "took what came again", "the records end", "leaves it unanswered"],
)
def test_the_next_ack_shows_what_the_receiver_dropped(
    tmp_path: Path, answer: int | None, length_us: float, wanted: tuple[str, str, int, int]
) -> None:
    records = load(tmp_path, dropped(answer), length_us)
    assert causes(records)[0] == wanted
    assert values(records)["packets_lost"] == 0


def test_one_round_trip_after_the_handshake_is_no_stall(tmp_path: Path) -> None:
    """The only packet is repaired, and so is no sample of the round trip."""
    talk = Conversation(delay_us=10_000)
    talk.data(20_000, 0, arrives=False)
    talk.data(60_000, 0)
    talk.ack(70_000, MSS)
    assert values(load(tmp_path, talk))["stall_count"] == 0


@pytest.mark.parametrize(("reset_at", "wanted"), [(22_000, []), (400_000, [400_000 - 20_000])])
def test_a_silence_ends_when_its_connection_is_reset(tmp_path: Path, reset_at: int, wanted: list[int]) -> None:
    talk = Conversation(delay_us=1000)
    talk.data(3000, 0)
    talk.ack(4000, MSS)
    talk.data(20_000, MSS)
    talk.ack(reset_at - 1000, 0, flags=RST)
    records = load(tmp_path, talk, 900_000)
    found = [stall.evidence for stall in flow_stalls(records, "bulk")]
    assert [stall.length_ns // 1000 for stall in found if stall.start_ns == 20_000_000] == wanted
