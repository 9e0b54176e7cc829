# SPDX-License-Identifier: Apache-2.0
"""Stalls: cause, end and proof of silences written by hand; and two real ones."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics import CAUSES, ENDS, STALLS, analyse, stalls_table
from testctl.metrics.stalls.table import flow_stalls, proof
from testctl.records import Records, load_raw
from testctl.records.schema import ECE, FIN, SYN, TCP_INFO_FIELDS

from controller.tests.support.synthetic import T0_NS, Conversation, write_point

FIXTURES = Path(__file__).parent / "fixtures"
MSS = 1448


def lively(talk: Conversation, *, packets: int = 40, at_us: float = 100) -> float:
    """A window of four packets at a time, each acknowledged; returns when the last ACK has come."""
    for n in range(packets):
        talk.data(at_us, MSS * n)
        talk.ack(at_us + talk.delay_us, MSS * (n + 1))
        at_us += 2 * talk.delay_us + 1
    return at_us


NO_PROBES = {"sender": {"net.ipv4.tcp_early_retrans": 0}}


def load(tmp_path: Path, talk: Conversation, settings: dict[str, Any] | None = None) -> Records:
    write_point(tmp_path, talk.captures(), settings=settings or {})
    return load_raw(tmp_path)


def stalls(records: Records) -> list[dict[str, Any]]:
    found = stalls_table(records)
    assert found.schema == STALLS
    rows: list[dict[str, Any]] = found.to_pylist()
    assert all(row["cause"] in CAUSES and row["ended_by"] in ENDS for row in rows)
    return rows


def sample(tmp_path: Path, at_us: dict[float, dict[str, int]]) -> None:
    """Samples of the sender's tcp_info, ESTABLISHED, with these values; all others are 0."""
    samples = b""
    for time_us, values in at_us.items():
        info = bytearray(320)
        for name, place, width in TCP_INFO_FIELDS:
            info[place : place + width] = ({"state": 1} | values).get(name, 0).to_bytes(width, "little")
        samples += struct.pack("<QHHIII", T0_NS + int(time_us * 1000), 40000, 5001, 1, 0, 248) + info
    (tmp_path / "raw" / "sender" / "tcp_info.bin").write_bytes(b"TGI1" + struct.pack("<I", 320) + samples)


def forgotten_ack(talk: Conversation) -> float:
    """Packets 40, 41 are marked; 42 is not and changes the state: ACK for 40 and 41, none for 42."""
    at = lively(talk)
    for n in (40, 41, 42, 43):
        talk.data(at + n - 40, MSS * n, ecn=3 if n < 42 else 2)
    talk.ack(at + 12, MSS * 42, flags=0x10 | ECE)
    return at


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


def test_forgotten_ack_that_a_probe_of_the_tail_ends(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 3_000, MSS * 43)
    talk.ack(at + 3_010, MSS * 44)
    records = load(tmp_path, talk)
    (stall,) = stalls(records)
    assert (stall["cause"], stall["ended_by"]) == ("ack_owed", "tlp")
    got = analyse(records).metrics["bulk"]
    assert (got["loss_probes"], got["retransmission_timeouts"]) == (1, 0)


def test_forgotten_ack_that_a_probe_with_new_data_ends(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 3_000, MSS * 44)
    talk.ack(at + 3_010, MSS * 45)
    talk.data(at + 3_030, MSS * 45)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"]) == ("ack_owed", "tlp")


@pytest.mark.parametrize(
    ("settings", "ended_by"),
    [({}, "tlp"), (NO_PROBES, "rto"), ({"sender": {"net.ipv4.tcp_sack": 0}}, "rto")],
)
def test_one_packet_outstanding_is_head_and_tail(tmp_path: Path, settings: dict[str, Any], ended_by: str) -> None:
    """A probe's time is then the timeout's, and it goes first wherever it may be sent."""
    talk = Conversation()
    at = lively(talk)
    talk.data(at, MSS * 40)
    talk.data(at + 203_000, MSS * 40)
    talk.ack(at + 203_010, MSS * 41)
    (stall,) = stalls(load(tmp_path, talk, settings))
    assert (stall["cause"], stall["ended_by"]) == ("ack_owed", ended_by)


def test_delayed_ack_that_comes_by_itself(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.ack(at + 40_000, MSS * 44)
    talk.data(at + 40_010, MSS * 44)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"], stall["owed_bytes"]) == ("delayed_ack", "ack", 2 * MSS)


def test_delayed_ack_whose_data_waits_in_its_own_host(tmp_path: Path) -> None:
    """What an ACK lets go may wait behind the packets of other connections, which a time stamp in ms does not tell."""
    talk = Conversation()
    at = lively(talk)
    for n in (40, 41):
        talk.data(at + n - 40, MSS * n)
    talk.ack(at + 40_000, MSS * 42)
    talk.data(at + 40_000 + talk.delay_us + 170, MSS * 42)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"], stall["owed_bytes"]) == ("delayed_ack", "ack", 2 * MSS)


def test_timeout_after_a_loss(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    for n in (40, 41):
        talk.data(at + n - 40, MSS * n, arrives=False)
    talk.data(at + 200_000, MSS * 40)
    talk.ack(at + 200_010, MSS * 41)
    talk.data(at + 200_020, MSS * 41)
    talk.ack(at + 200_030, MSS * 42)
    records = load(tmp_path, talk)
    (stall,) = stalls(records)
    assert (stall["cause"], stall["ended_by"], stall["lost_bytes"]) == ("rto", "rto", 2 * MSS)
    got = analyse(records).metrics["bulk"]
    assert (got["stall_rto_count"], got["stall_ack_owed_count"], got["packets_lost"]) == (1, 0, 2)


def test_probe_after_the_loss_of_the_tail(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    talk.data(at, MSS * 40)
    talk.data(at + 1, MSS * 41, arrives=False)
    talk.ack(at + 10, MSS * 41)
    talk.data(at + 3_000, MSS * 41)
    talk.ack(at + 3_010, MSS * 42)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"]) == ("tlp", "tlp")


def test_timeout_after_the_loss_of_an_ack(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    for n in (40, 41):
        talk.data(at + n - 40, MSS * n)
    talk.ack(at + 12, MSS * 42, arrives=False)
    talk.data(at + 201_000, MSS * 40)
    talk.ack(at + 201_010, MSS * 42)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"], stall["owed_bytes"]) == ("rto", "rto", 0)


def test_application_without_data(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    talk.data(at + 50_000, MSS * 40)
    talk.ack(at + 50_010, MSS * 41)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"], stall["outstanding_bytes"]) == ("application", "new_data", 0)


@pytest.mark.parametrize(("unsent", "cause"), [(2 * MSS, "ack_owed"), (0, "application")])
def test_data_that_waited_for_an_owed_ack_until_the_application_closed(tmp_path: Path, unsent: int, cause: str) -> None:
    """The last data, held back while an ACK is due, leaves with the FIN: the application had written it before."""
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 30_000, MSS * 44)
    talk.data(at + 30_001, MSS * 45, flags=FIN | 0x10)
    talk.ack(at + 30_020, MSS * 46)
    write_point(tmp_path, talk.captures(), settings=NO_PROBES)
    sample(tmp_path, {at + 20_000: {"unacked": 2, "notsent_bytes": unsent}})
    (stall,) = stalls(load_raw(tmp_path))
    assert (stall["cause"], stall["ended_by"], stall["owed_bytes"]) == (cause, "new_data", 2 * MSS)


def test_closed_window(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk)
    talk.data(at, MSS * 40)
    talk.ack(at + 10, MSS * 41, window=0)
    talk.ack(at + 30_000, MSS * 41, window=500)
    talk.data(at + 30_010, MSS * 41)
    talk.ack(at + 30_020, MSS * 42)
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"]) == ("window", "ack")


@pytest.mark.parametrize(
    ("window", "acked_at", "cause"),
    [(0, 30, "window"), (5, 30, "window"), (12, 30, "ack_owed"), (0, 5, "ack_owed"), (500, 30, "ack_owed")],
    ids=["closed", "less than a packet", "space for it", "closed before it came and open since", "open"],
)
def test_data_that_the_receiver_had_to_drop_is_no_ack_owed(
    tmp_path: Path, window: int, acked_at: int, cause: str
) -> None:
    """It arrived, and its ACK tells that it was not taken: the windows are in units of 128 bytes."""
    talk = Conversation()
    at = lively(talk)
    for n in (40, 41):
        talk.data(at + n - 40, MSS * n)
    talk.ack(at + acked_at, MSS * 41, window=window)
    if acked_at < 11:
        talk.ack(at + 20, MSS * 41, window=500)
    talk.data(at + 203_000, MSS * 41)
    (stall,) = stalls(load(tmp_path, talk, NO_PROBES))
    assert (stall["cause"], stall["ended_by"], stall["owed_bytes"]) == (cause, "rto", MSS)


def test_syns_that_nobody_answers_wait_for_their_timer(tmp_path: Path) -> None:
    talk = Conversation(hello=False)
    for at in (0, 1_000_000, 3_000_000):
        talk.data(at, -1, 0, flags=SYN, arrives=at > 0)
    records = load(tmp_path, talk)
    assert [(one["cause"], one["ended_by"]) for one in stalls(records)] == [("rto", "rto"), ("rto", "rto")]
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
    assert [(one["cause"], one["ended_by"]) for one in found] == [*first, ("application", "new_data")]


def test_packets_that_waited_for_tokens(tmp_path: Path) -> None:
    talk = Conversation()
    at = lively(talk, packets=4000)
    stamp = (T0_NS + int(at * 1000)) // 10**6 % 2**32
    for n in range(4000, 4004):
        talk.data(at + 20_000, MSS * n, tsval=stamp)
        talk.ack(at + 20_010, MSS * (n + 1))
    (stall,) = stalls(load(tmp_path, talk))
    assert (stall["cause"], stall["ended_by"]) == ("tokens", "new_data")
    assert stall["own_wait_ns"] == pytest.approx(20_000_000, abs=2_000_000)


def test_records_that_end_within_a_stall(tmp_path: Path) -> None:
    talk = Conversation()
    forgotten_ack(talk)
    records = load(tmp_path, talk)
    records.outcome.end_ns = T0_NS + 500_000_000
    (stall,) = stalls(records)
    assert (stall["cause"], stall["ended_by"], stall["ender_row"]) == ("ack_owed", "end", -1)
    assert stall["end_ns"] == 500_000_000


def test_long_path_is_no_stall(tmp_path: Path) -> None:
    talk = Conversation(delay_us=20_000)
    lively(talk, at_us=100_000)
    assert stalls(load(tmp_path, talk)) == []


def test_without_the_receivers_capture_the_timer_is_all_that_is_known(tmp_path: Path) -> None:
    talk = Conversation()
    at = forgotten_ack(talk)
    talk.data(at + 203_000, MSS * 42)
    captures = talk.captures()
    write_point(tmp_path, {"sender": captures["sender"]})
    (stall,) = stalls(load_raw(tmp_path))
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
    sample(
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


@pytest.mark.parametrize(
    ("fixture", "cause", "ended_by", "length_ms"),
    [("ack_owed", "ack_owed", "tlp", 3.035136), ("delayed_ack", "delayed_ack", "ack", 41.045248)],
)
def test_real_stalls_of_the_dctcp_bug(fixture: str, cause: str, ended_by: str, length_ms: float) -> None:
    """Cut from captures of the lab (Linux 6.12, dctcp_bug, GRO), handshake and what is around one stall."""
    (stall,) = [row for row in stalls(load_raw(FIXTURES / fixture)) if row["last_sent_seq"] >= 0]
    assert (stall["cause"], stall["ended_by"]) == (cause, ended_by)
    assert stall["length_ns"] == length_ms * 1e6
    assert (stall["missing_bytes"], stall["owed_bytes"], stall["acked_ece"]) == (0, 4 * MSS, 1)


def test_real_losses_are_what_the_kernel_retransmitted() -> None:
    """A transfer over a short drop-tail queue between namespaces (Linux 6.18)."""
    records = load_raw(FIXTURES / "loss")
    got = analyse(records).metrics["bulk"]
    assert got["packets_lost"] == got["retransmissions"] == records.counters["sender"]["snmp"]["Tcp.RetransSegs"] == 71
    assert got["payload_bytes"] == 250_000
    assert got["throughput_bps"] == pytest.approx(20e6, rel=0.03)
