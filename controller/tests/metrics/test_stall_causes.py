# SPDX-License-Identifier: Apache-2.0
"""Every cause of a stall beside its neighbours: what is one step away has the other cause.

A silence begins with packet 40; times are in ms after that.  The path takes 10 µs each way unless a packet says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics import CAUSES
from testctl.records import load_raw
from testctl.records.schema import SYN

from controller.tests.metrics.test_stalls import MSS, NO_PROBES, sample, stalls
from controller.tests.support.synthetic import T0_NS, Conversation, write_point

BEFORE = 60
OPEN = 500
"""Packets before the silence, 0.9 ms apart; a window, in units of 128 bytes."""


@dataclass(frozen=True)
class Packet:
    """n: what it sends, or acknowledges; takes: ms of its path; waited: ms in its own host; more: of Conversation."""

    kind: str
    at: float
    n: int
    takes: float = 0.01
    waited: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)


def data(at: float, n: int, takes: float = 0.01, waited: float = 0.0, **more: Any) -> Packet:
    return Packet("data", at, n, takes, waited, more)


def ack(at: float, n: int, takes: float = 0.01, **more: Any) -> Packet:
    return Packet("ack", at, n, takes, 0.0, more)


LOST = {"arrives": False}
FOUR_LOSING_THE_FIRST = (data(0, 40, **LOST), *(data(0.001 * n, 40 + n) for n in (1, 2, 3)))
FOUR_WITH_THE_FIRST_SLOW = (data(0, 40, 30), *(data(0.001 * n, 40 + n) for n in (1, 2, 3)))
TWO = (data(0, 40), data(0.001, 41))
SACKS = tuple(ack(0.02 + 0.001 * n, 40, 20, sacks=(MSS * 41, MSS * (41 + n))) for n in (1, 2, 3))
PROBES: Mapping[str, Any] = {}


def case(
    name: str, packets: Sequence[Packet], *wanted: str, settings: Mapping[str, Any] = NO_PROBES, unsent: int = -1
) -> Any:
    """wanted: cause and end of the silence; unsent: bytes that a sample within it says are written and not sent."""
    return pytest.param(packets, wanted, settings, unsent, id=name)


CASES = [
    # tokens: half of the silence
    case("12 of 20 ms in its host", [data(0, 40), ack(0.02, 41), data(20, 41, waited=12)], "tokens", "new_data"),
    case("8 of 20 ms in its host", [data(0, 40), ack(0.02, 41), data(20, 41, waited=8)], "application", "new_data"),
    case("again, after 120 of 203 ms in its host", [data(0, 40, **LOST), data(203, 40, waited=120)], "tokens", "ack"),
    case("again, after 80 of 203 ms in its host", [data(0, 40, **LOST), data(203, 40, waited=80)], "rto", "rto"),
    # window, application: space for a packet
    case("space for less than a packet", [data(0, 40), ack(0.02, 41, window=11), data(50, 41)], "window", "new_data"),
    case("space for a packet", [data(0, 40), ack(0.02, 41, window=12), data(50, 41)], "application", "new_data"),
    case("the window opens", [data(0, 40), ack(0.02, 41, window=11), ack(50, 41, window=OPEN), data(50.02, 41)],
         "window", "ack"),
    case("the window was open", [data(0, 40), ack(0.02, 41, window=12), ack(50, 41, window=OPEN), data(50.02, 41)],
         "application", "ack"),
    case("little space, and more was written", [data(0, 40), ack(0.02, 41, window=11), data(50, 41, length=1408)],
         "window", "new_data", unsent=MSS),
    case("little space, and nothing was written", [data(0, 40), ack(0.02, 41, window=11), data(50, 41, length=1408)],
         "application", "new_data", unsent=0),
    # loss, path, rto, tlp: what became of the data
    case("lost, and ACKs say so", [*FOUR_LOSING_THE_FIRST, *SACKS, data(20.1, 40)], "loss", "ack"),
    case("slow, and ACKs say that it is lost", [*FOUR_WITH_THE_FIRST_SLOW, *SACKS, data(20.1, 40)], "path", "ack"),
    case("slow, until it is acknowledged", [*FOUR_WITH_THE_FIRST_SLOW, ack(30.01, 44), data(30.03, 44)], "path", "ack"),
    case("lost, and no ACK comes", [*FOUR_LOSING_THE_FIRST, data(203, 40)], "rto", "rto"),
    case("slow, and no ACK comes", [data(0, 40, 300), data(203, 40)], "path", "rto"),
    case("lost, and a probe goes", [data(0, 40), data(0.001, 41, **LOST), ack(0.02, 41), data(3, 41)], "tlp", "tlp",
         settings=PROBES),
    case("slow, and a probe goes", [data(0, 40), data(0.001, 41, 9), ack(0.02, 41), data(3, 41)], "path", "tlp",
         settings=PROBES),
    case("lost, and the application had nothing more", [*TWO[:1], data(0.001, 41, **LOST), data(20, 42)],
         "application", "new_data", unsent=0),
    case("lost, and the application had more", [*TWO[:1], data(0.001, 41, **LOST), data(20, 42)], "loss", "new_data",
         unsent=MSS),
    # rto, tlp, path, delayed_ack, ack_owed, loss: what became of the ACK
    case("the ACK is lost", [*TWO, ack(0.02, 42, **LOST), data(203, 40), ack(203.02, 42)], "rto", "rto"),
    case("the ACK is slow", [*TWO, ack(0.02, 42, 300), data(203, 40), ack(203.02, 42)], "path", "rto"),
    case("the ACK is sent late, and slow", [*TWO, ack(90, 42, 300), data(203, 40), ack(203.02, 42)], "path", "rto"),
    case("the ACK is sent later, and slow", [*TWO, ack(110, 42, 300), data(203, 40), ack(203.02, 42)], "delayed_ack",
         "rto"),
    case("the ACK is not sent", [*TWO, data(203, 40), ack(203.02, 42)], "ack_owed", "rto"),
    case("the ACK is lost, and a probe goes", [*TWO, ack(0.02, 42, **LOST), data(3, 41), ack(3.02, 42)], "tlp", "tlp",
         settings=PROBES),
    case("the ACK is slow, and a probe goes", [*TWO, ack(0.02, 42, 9), data(3, 41), ack(3.02, 42)], "path", "tlp",
         settings=PROBES),
    case("the ACK is not sent, and a probe goes", [*TWO, data(3, 41), ack(3.02, 42)], "ack_owed", "tlp",
         settings=PROBES),
    case("the ACK is sent in the first half", [*TWO, ack(15, 42, 25), data(40.01, 42)], "path", "ack"),
    case("the ACK is sent in the second half", [*TWO, ack(25, 42, 15), data(40.01, 42)], "delayed_ack", "ack"),
    case("the ACK is lost, and sent again", [*TWO, ack(0.02, 42, **LOST), ack(40, 42), data(40.02, 42)], "loss", "ack"),
    case("the ACK is sent late, and its window again", [*TWO, ack(40, 42), ack(40.005, 42), data(40.02, 42)],
         "delayed_ack", "ack"),
    case("the ACK is lost, and a closed window opens", [*TWO, ack(0.01, 41, window=12), ack(0.02, 42, **LOST),
         ack(40, 42), data(40.02, 42)], "window", "ack"),
    # what the application does meanwhile
    case("an ACK is owed, and nothing was written", [*TWO, data(30, 42)], "application", "new_data", unsent=0),
    case("an ACK is owed, and more was written", [*TWO, data(30, 42)], "ack_owed", "new_data", unsent=MSS),
]  # fmt: skip


def told(tmp_path: Path, talk: Conversation, settings: Mapping[str, Any], samples: Mapping[float, int]) -> list[Any]:
    write_point(tmp_path, talk.captures(), settings=settings)
    if samples:
        sample(tmp_path, {at: {"notsent_bytes": unsent} for at, unsent in samples.items()})
    return stalls(load_raw(tmp_path))


def said(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(row["cause"], row["ended_by"]) for row in rows]


@pytest.mark.parametrize(("packets", "wanted", "settings", "unsent"), CASES)
def test_what_is_one_step_away_has_another_cause(
    packets: Sequence[Packet], wanted: tuple[str, str], settings: Mapping[str, Any], unsent: int, tmp_path: Path
) -> None:
    talk = Conversation()
    for n in range(BEFORE):
        talk.data(900 * n + 100, MSS * (n - BEFORE + 40))
        talk.ack(900 * n + 110, MSS * (n - BEFORE + 41))
    begin = 900 * BEFORE
    for one in packets:
        talk.delay_us, at = one.takes * 1000, begin + one.at * 1000
        if one.kind == "ack":
            talk.ack(at, MSS * one.n, **one.more)
        else:
            stamp = (T0_NS + int((at - one.waited * 1000) * 1000)) // 10**6 % 2**32
            talk.data(at, MSS * one.n, tsval=stamp, **one.more)
    samples: dict[float, int] = {} if unsent < 0 else {begin + 2_000: unsent}
    assert said(told(tmp_path, talk, settings, samples)) == [wanted]


@pytest.mark.parametrize(
    ("answered", "first_byte", "cause"),
    [(500, 500.02, "path"), (500, 510, "path"), (260, 510, "path"), (250, 510, "application"), (0, 500, "application")],
)
def test_a_handshake_that_takes_long(answered: float, first_byte: float, cause: str, tmp_path: Path) -> None:
    """Nothing can be sent before the other end answers; after it, it is the application's."""
    talk = Conversation(hello=False)
    talk.data(0, -1, 0, flags=SYN)
    talk._put(1, answered * 1000 + 10, 0, True, seq=77, ack=1001, flags=SYN | 0x10)
    talk.data(first_byte * 1000 + 20, 0)
    talk.ack(first_byte * 1000 + 40, MSS)
    assert said(told(tmp_path, talk, NO_PROBES, {})) == [(cause, "new_data")]


@pytest.mark.parametrize(
    ("packets", "cause"),
    [
        ((data(0, 40), ack(0.02, 41, **LOST)), "path"), ((data(0, 40, 900),), "path"), ((data(0, 40),), "ack_owed"),
        (FOUR_LOSING_THE_FIRST, "loss"), (FOUR_WITH_THE_FIRST_SLOW, "ack_owed"),
    ],
    ids=["the ACK is under way", "the data is under way", "the ACK is owed", "the data is lost", "the data was slow"],
)  # fmt: skip
def test_records_that_end_before_a_stall_does(packets: Sequence[Packet], cause: str, tmp_path: Path) -> None:
    talk = Conversation()
    for n in range(40):
        talk.data(100 + 21 * n, MSS * n)
        talk.ack(110 + 21 * n, MSS * (n + 1))
    for one in packets:
        talk.delay_us, at = one.takes * 1000, 1_000 + one.at * 1000
        (talk.data if one.kind == "data" else talk.ack)(at, MSS * one.n, **one.more)
    write_point(tmp_path, talk.captures())
    records = load_raw(tmp_path)
    records.outcome.end_ns = T0_NS + 500_000_000
    assert said(stalls(records)) == [(cause, "end")]


def test_every_cause_is_planted() -> None:
    planted = {one.values[1][0] for one in CASES}
    assert planted == set(CAUSES)
