# SPDX-License-Identifier: Apache-2.0
"""Stalls: every cause beside its neighbours (what is one step away has the other cause), end, proof; and real ones.

A silence of a case begins with packet 40; times are in ms after that.  The path takes 10 µs each way unless a packet
says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics import CAUSES, ENDS, STALLS, analyse, stalls_table
from testctl.metrics.stalls.table import flow_stalls, proof
from testctl.records import Records, load_raw
from testctl.records.schema import ECE, FIN, SYN

from controller.tests.support.synthetic import T0_NS, Conversation, write_point, write_samples

FIXTURES = Path(__file__).parent / "fixtures"
MSS = 1448
NO_PROBES = {"sender": {"net.ipv4.tcp_early_retrans": 0}}
NO_SACK = {"sender": {"net.ipv4.tcp_sack": 0}}
BEFORE = 60
OPEN = 500
"""Packets before the silence, 0.9 ms apart; a window, in units of 128 bytes."""


def lively(talk: Conversation, *, packets: int = 40, at_us: float = 100) -> float:
    """A window of four packets at a time, each acknowledged; returns when the last ACK has come."""
    for n in range(packets):
        talk.data(at_us, MSS * n)
        talk.ack(at_us + talk.delay_us, MSS * (n + 1))
        at_us += 2 * talk.delay_us + 1
    return at_us


def load(tmp_path: Path, talk: Conversation, settings: Mapping[str, Any] | None = None) -> Records:
    return load_raw(write_point(tmp_path, talk.captures(), settings=settings or {}))


def stalls(records: Records) -> list[dict[str, Any]]:
    table = stalls_table(records)
    assert table.schema == STALLS
    rows: list[dict[str, Any]] = table.to_pylist()
    assert all(row["cause"] in CAUSES and row["ended_by"] in ENDS for row in rows)
    return rows


def forgotten_ack(talk: Conversation) -> float:
    """Packets 40, 41 are marked; 42 is not and changes the state: ACK for 40 and 41, none for 42."""
    at = lively(talk)
    for n in (40, 41, 42, 43):
        talk.data(at + n - 40, MSS * n, ecn=3 if n < 42 else 2)
    talk.ack(at + 12, MSS * 42, flags=0x10 | ECE)
    return at


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
    case("the data that waits leaves with the FIN", [*TWO, data(30, 42), data(30.001, 43, flags=FIN | 0x10)],
         "ack_owed", "new_data", unsent=2 * MSS),
    case("data and FIN are written late", [*TWO, data(30, 42), data(30.001, 43, flags=FIN | 0x10)],
         "application", "new_data", unsent=0),
    # which timer
    case("a probe of new data", [*TWO, data(3, 42), ack(3.02, 43), data(3.04, 43)], "ack_owed", "tlp", settings=PROBES),
    case("a single packet is head and tail", [data(0, 40), data(203, 40)], "ack_owed", "tlp", settings=PROBES),
    case("without probes its timeout", [data(0, 40), data(203, 40)], "ack_owed", "rto"),
    case("without SACK too", [data(0, 40), data(203, 40)], "ack_owed", "rto", settings=NO_SACK),
    case("what the ACK lets go waits for others", [*TWO, ack(40, 42), data(40.18, 42)], "delayed_ack", "ack"),
    # the receiver had to drop what its window had no space for
    case("it arrives at a closed window", [*TWO, ack(0.03, 41, window=0), data(203, 41)], "window", "rto"),
    case("at one of less than a packet", [*TWO, ack(0.03, 41, window=5), data(203, 41)], "window", "rto"),
    case("at one of a packet", [*TWO, ack(0.03, 41, window=12), data(203, 41)], "ack_owed", "rto"),
    case("at an open one", [*TWO, ack(0.03, 41), data(203, 41)], "ack_owed", "rto"),
    case("at one that was closed", [*TWO, ack(0.005, 41, window=0), ack(0.02, 41), data(203, 41)], "ack_owed", "rto"),
]  # fmt: skip


def causes(records: Records) -> list[tuple[str, str]]:
    return [(row["cause"], row["ended_by"]) for row in stalls(records)]


@pytest.mark.parametrize(("packets", "wanted", "settings", "unsent"), CASES)
def test_what_is_one_step_away_has_another_cause(
    packets: Sequence[Packet], wanted: tuple[str, str], settings: Mapping[str, Any], unsent: int, tmp_path: Path
) -> None:
    talk = Conversation()
    for n in range(BEFORE):
        talk.data(900 * n + 100, MSS * (n - BEFORE + 40))
        talk.ack(900 * n + 110, MSS * (n - BEFORE + 41))
    begin = 900 * BEFORE
    for packet in packets:
        talk.delay_us, at = packet.takes * 1000, begin + packet.at * 1000
        if packet.kind == "ack":
            talk.ack(at, MSS * packet.n, **packet.more)
        else:
            stamp = (T0_NS + int((at - packet.waited * 1000) * 1000)) // 10**6 % 2**32
            talk.data(at, MSS * packet.n, tsval=stamp, **packet.more)
    write_point(tmp_path, talk.captures(), settings=settings)
    if unsent >= 0:
        write_samples(tmp_path, {begin + 2_000: {"notsent_bytes": unsent}})
    assert causes(load_raw(tmp_path)) == [wanted]


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
    assert causes(load(tmp_path, talk, NO_PROBES)) == [(cause, "new_data")]


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
    for packet in packets:
        talk.delay_us, at = packet.takes * 1000, 1_000 + packet.at * 1000
        (talk.data if packet.kind == "data" else talk.ack)(at, MSS * packet.n, **packet.more)
    records = load(tmp_path, talk)
    records.outcome.end_ns = T0_NS + 500_000_000
    (stall,) = stalls(records)
    assert (stall["cause"], stall["ended_by"], stall["ender_row"], stall["end_ns"]) == (cause, "end", -1, 500_000_000)


def test_every_cause_is_planted() -> None:
    planted = {planned.values[1][0] for planned in CASES}
    assert planted == set(CAUSES)


def test_forgotten_ack_that_a_timeout_ends(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 203_000, MSS * 42)
    talk.ack(at + 203_010, MSS * 44)
    talk.data(at + 203_030, MSS * 44)
    talk.ack(at + 203_040, MSS * 45)
    records = load(tmp_path, talk)
    (stall,) = stalls(records)
    assert (stall["cause"], stall["ended_by"]) == ("ack_owed", "rto")
    assert stall["length_ns"] == 202_997_000
    assert (stall["missing_bytes"], stall["lost_bytes"], stall["owed_bytes"]) == (0, 0, 2 * MSS)
    assert (stall["received_seq"], stall["received_end"]) == (MSS * 43, MSS * 44)
    assert (stall["received_ce"], stall["acked"], stall["acked_ece"]) == (0, MSS * 42, 1)
    assert (stall["ender_seq"], stall["ender_retrans"]) == (MSS * 42, True)
    row = records.packets.slice(stall["ender_row"], 1).to_pylist()[0]
    assert (row["seq"], row["where"], row["time_ns"]) == (MSS * 42, "sender", stall["end_ns"])
    got = analyse(records).metrics["bulk"]
    assert (got["stall_ack_owed_count"], got["stall_rto_count"], got["packets_lost"]) == (1, 0, 0)
    assert (got["retransmission_timeouts"], got["timeout_length_mean_ms"]) == (1, 202.978)
    assert got["stall_ack_owed_longest_ms"] == got["stall_longest_ms"] == 202.997
    assert "nothing was missing" in stall["proof"]
    assert f"the receiver's last ACK was {MSS * 42} with ECE" in stall["proof"]


def test_change_of_mark_is_in_the_proof(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    talk.data(at, MSS * 40, ecn=3)
    talk.data(at + 1, MSS * 41)
    talk.ack(at + 11, MSS * 41, flags=0x10 | ECE)
    talk.data(at + 203_000, MSS * 41)
    (stall,) = stalls(load(tmp_path, talk, NO_PROBES))
    assert (stall["cause"], stall["ended_by"]) == ("ack_owed", "rto")
    assert (stall["received_ce"], stall["received_ce_before"]) == (0, 1)
    assert "without CE, the packet before it with CE" in stall["proof"]


def test_before_the_first_byte_and_the_first_ack_the_proof_has_no_numbers(tmp_path: Path) -> None:
    talk = Conversation()
    talk.data(forgotten_ack(talk) + 203_000, MSS * 43)
    found = flow_stalls(load(tmp_path, talk), "bulk")[0].evidence
    assert proof(replace(found, last_sent_end=-1, una=-1)).startswith("no bytes left by ")
    assert "; no ACK had come back; " in proof(replace(found, last_sent_end=-1, una=-1))


def test_syns_that_nobody_answers_wait_for_their_timer(tmp_path: Path) -> None:
    talk = Conversation(hello=False)
    for at in (0, 1_000_000, 3_000_000):
        talk.data(at, -1, 0, flags=SYN, arrives=at > 0)
    records = load(tmp_path, talk)
    assert [(stall["cause"], stall["ended_by"]) for stall in stalls(records)] == [("rto", "rto"), ("rto", "rto")]
    got = analyse(records).metrics["bulk"]
    assert (got["stall_application_count"], got["stall_rto_count"], got["stall_rto_longest_ms"]) == (0, 2, 2000)


@pytest.mark.parametrize("answer", [True, False])
def test_an_application_that_waits_before_its_first_byte_is_no_lost_syn(tmp_path: Path, answer: bool) -> None:
    talk = Conversation(delay_us=10)
    if not answer:  # the SYN-ACK was lost once
        talk = Conversation(hello=False)
        talk.data(0, -1, 0, flags=SYN)
        talk._put(1, 10, 0, False, seq=77, ack=1001, flags=SYN | 0x10)
        talk.data(1_000_000, -1, 0, flags=SYN)
        talk._put(1, 1_000_010, 0, True, seq=77, ack=1001, flags=SYN | 0x10)
    talk.data(1_500_000, 0)
    talk.ack(1_500_010, MSS)
    found = stalls(load(tmp_path, talk))
    first = [] if answer else [("rto", "rto")]
    assert [(stall["cause"], stall["ended_by"]) for stall in found] == [*first, ("application", "new_data")]


def test_long_path_is_no_stall(tmp_path: Path) -> None:
    talk = Conversation(delay_us=20_000)
    lively(talk, at_us=100_000)
    assert stalls(load(tmp_path, talk)) == []


def test_without_the_receivers_capture_the_timer_is_all_that_is_known(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 203_000, MSS * 42)
    captures = talk.captures()
    (stall,) = stalls(load_raw(write_point(tmp_path, {"sender": captures["sender"]})))
    assert (stall["cause"], stall["ended_by"]) == ("rto", "rto")
    assert (stall["missing_bytes"], stall["owed_bytes"], stall["received_row"]) == (-1, -1, -1)


def test_kernels_samples_are_shown(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    talk.data(at, MSS * 40)
    talk.data(at + 250_000, MSS * 40)
    talk.ack(at + 250_010, MSS * 41)
    write_point(tmp_path, talk.captures(), settings=NO_PROBES)
    same = {"rto": 249_000, "unacked": 1, "snd_cwnd": 7}
    write_samples(
        tmp_path,
        {
            1_000: same | {"snd_mss": 1448, "notsent_bytes": 100},
            at + 251_000: same | {"snd_mss": 1348, "notsent_bytes": 300},
        },
    )
    records = load_raw(tmp_path)
    (stall,) = stalls(records)
    assert (stall["ended_by"], stall["rto_us"]) == ("rto", 249_000)
    got = analyse(records).metrics["bulk"]
    assert (got["cwnd_mean"], got["mss_min_bytes"], got["mss_max_bytes"]) == (7, 1348, 1448)
    assert (got["notsent_mean_bytes"], got["notsent_max_bytes"]) == (200, 300)


def test_real_losses_are_what_the_kernel_retransmitted() -> None:
    """A transfer over a short drop-tail queue between namespaces (Linux 6.18)."""
    records = load_raw(FIXTURES / "loss")
    got = analyse(records).metrics["bulk"]
    assert got["packets_lost"] == got["retransmissions"] == records.counters["sender"]["snmp"]["Tcp.RetransSegs"] == 71
    assert got["payload_bytes"] == 250_000
    assert got["throughput_bps"] == pytest.approx(20e6, rel=0.03)
