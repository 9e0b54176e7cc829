# SPDX-License-Identifier: Apache-2.0
"""Instruments that do not agree are named, with what each says."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.core.outcome import FlowOutcome, Outcome
from testctl.metrics import analyse, instruments_agree, recovery
from testctl.metrics.core.available import counts_alone, timers_alone
from testctl.records import Records, load_raw
from testctl.records.schema import ACK, FIN
from testctl_agent.wire.results import FlowEnd

from controller.tests.support.synthetic import Conversation, bulk, write_point

FIXTURES = Path(__file__).parent / "fixtures"
BYTES = 1448 * 1000


def point(tmp_path: Path, captures: dict[str, Any] | None = None, **ends: Any) -> Records:
    records = load_raw(write_point(tmp_path, captures or bulk(1000)))
    if ends:
        records.outcome.flows = {"bulk": FlowOutcome(**{side: FlowEnd.from_json(end) for side, end in ends.items()})}
    return records


def without(captures: dict[str, Any], where: str, row: int) -> dict[str, Any]:
    keep = np.arange(len(captures[where]["time_ns"])) != row
    return {**captures, where: {name: column[keep] for name, column in captures[where].items()}}


def test_agreeing_instruments_have_nothing_to_say(tmp_path: Path) -> None:
    assert instruments_agree(point(tmp_path)) == []
    ends = {
        "client": {"role": "sender", "error": None, "bytes": BYTES, "connections": [{"verified": None}]},
        "server": {"role": "receiver", "error": None, "bytes": BYTES, "connections": [{"verified": True}]},
    }
    assert instruments_agree(point(tmp_path, **ends)) == []
    assert instruments_agree(load_raw(FIXTURES / "loss")) == []


def test_dropped_packets_of_a_capture(tmp_path: Path) -> None:
    records = point(tmp_path)
    captures = {"receiver": {"dropped": 3}, "sender": {"dropped": 0}}
    collected = {host: {"capture": stated} for host, stated in captures.items()}
    outcome = Outcome.from_json({"collected": collected})
    records.outcome = replace(records.outcome, collected=outcome.collected)
    assert instruments_agree(records) == ["receiver: the capture dropped 3 packets"]


@pytest.mark.parametrize(
    ("ends", "reasons"),
    [
        (
            {"client": {"role": "sender", "bytes": BYTES - 1000}, "server": {"role": "receiver", "bytes": BYTES + 1}},
            [
                f"sender's capture has {BYTES} bytes of payload; its generator wrote {BYTES - 1000}",
                f"sender's capture has {BYTES} bytes of payload; receiver read {BYTES + 1}",
                f"receiver's capture has {BYTES} bytes of payload; receiver read {BYTES + 1}",
            ],
        ),
        ({"client": {"role": "sender", "connections": [{"bytes_sent": 5}]}}, []),
        (
            {"server": {"connections": [{"verified": False, "bad_offset": 17}]}},
            ["the receiver read other bytes than were sent at byte 17"],
        ),
        ({"client": {"error": "can't connect"}}, ["its generator failed: can't connect"]),
    ],
    ids=["counts otherwise", "states no bytes", "other content", "failed"],
)
def test_the_generators_results(tmp_path: Path, ends: dict[str, Any], reasons: list[str]) -> None:
    assert instruments_agree(point(tmp_path, **ends)) == [f"flow bulk: {reason}" for reason in reasons]


@pytest.mark.parametrize("where", ["sender", "receiver"])
def test_hole_in_a_capture(tmp_path: Path, where: str) -> None:
    captures = bulk(1000)
    row = int(np.flatnonzero((captures[where]["length"] > 0) & (captures[where]["src"] == 0))[500])
    (reason,) = instruments_agree(point(tmp_path, without(captures, where, row)))
    assert reason == (
        f"flow bulk: {where}'s capture has bytes up to {1448 * 500} of connection 0; {BYTES} were acknowledged"
    )


def test_kernel_that_counted_more_than_was_captured(tmp_path: Path) -> None:
    records = point(tmp_path)
    records.counters["receiver"] = {"snmp": {"Tcp.InSegs": 1500, "IpExt.InNoECTPkts": 0, "IpExt.InECT0Pkts": 1001}}
    assert instruments_agree(records) == [
        "receiver: its capture has 1001 arriving packets; its kernel counted 1500 (Tcp.InSegs)"
    ]


@pytest.mark.parametrize(
    "other", [{"Udp.InDatagrams": 3000}, {"Udp.InErrors": 1000, "Udp6.InDatagrams": 2000}, {"Ip.ReasmReqds": 3000}]
)
def test_packets_that_are_no_tcp_are_of_programs_with_their_own_traffic(tmp_path: Path, other: dict[str, int]) -> None:
    records = point(tmp_path)
    records.counters["receiver"] = {"snmp": {"Tcp.InSegs": 1001, "IpExt.InNoECTPkts": 3001, "IpExt.InECT0Pkts": 1000}}
    (reason,) = instruments_agree(records)
    assert reason.startswith(
        "receiver: its capture has 1001 arriving packets on the wire; its kernel counted 4001 (IpExt"
    )
    records.memo.clear()
    records.counters["receiver"]["snmp"] |= other
    assert instruments_agree(records) == []


def test_a_kernel_that_counts_another_network_too(tmp_path: Path) -> None:
    """The management of a host on a rack is TCP as well; its other device is not among the counters."""
    records = point(tmp_path)
    snmp = {"Tcp.InSegs": 1500, "IpExt.InNoECTPkts": 499, "IpExt.InECT0Pkts": 1001}
    records.counters["receiver"] = {"snmp": snmp, "device": {"eth1": {"rx_packets": 1003}}}
    assert instruments_agree(records) == []
    records.memo.clear()
    records.counters["receiver"]["device"]["eth1"]["rx_packets"] = 1500
    assert len(instruments_agree(records)) == 2


def test_a_flow_whose_hosts_were_not_captured_is_not_held_against_it(tmp_path: Path) -> None:
    records = point(tmp_path)
    (flow,) = records.point.flows
    apart = replace(flow, name="apart", source="other", sink="another")
    records.point = replace(records.point, flows=(flow, apart))
    records.outcome.flows = {"apart": FlowOutcome(server=FlowEnd("receiver", BYTES))}
    assert instruments_agree(records) == []
    records.point = replace(records.point, flows=(flow, replace(apart, sink="receiver")))  # captured, but not it
    records.memo.clear()
    (reason,) = instruments_agree(records)
    assert reason == f"flow apart: no capture (receiver) has a packet of it; receiver read {BYTES} bytes"


def counted(tmp_path: Path, *, InSegs: int = 2, **counters: int) -> Records:
    """One packet lost, probed after 230 ms, and acknowledged; the sender's kernel counted these."""
    talk = Conversation(delay_us=10_000)
    talk.data(20_000, 0, arrives=False)
    talk.data(260_000, 0)
    talk.ack(270_000, 1448)
    records = load_raw(write_point(tmp_path, talk.captures()))
    ext = {"TCPTimeouts": 0, "TCPLossProbes": 1, "TCPSackRecovery": 0, "TCPRenoRecovery": 0, "TCPSackRecoveryFail": 0,
           "TCPRenoRecoveryFail": 0}  # fmt: skip
    again = counters.pop("RetransSegs", 1)
    snmp = {f"TcpExt.{name}": number for name, number in (ext | counters).items()}
    records.counters["sender"] = {"snmp": snmp | {"Tcp.InSegs": InSegs, "Tcp.RetransSegs": again}}
    return records


def test_values_that_the_kernel_counts_otherwise_are_null_and_the_point_says_why(tmp_path: Path) -> None:
    agreed = analyse(counted(tmp_path)).metrics
    assert (agreed["bulk"]["loss_probes"], agreed["bulk"]["retransmission_timeouts"]) == (1, 0)
    assert (agreed["bulk"]["recoveries"], agreed["*"]["counter_mismatches"]) == (0, "none")
    by_timer = {f"stall_{cause}_{what}" for cause in ("rto", "tlp", "loss") for what in ("count", "longest_ms")}
    of_recovery = {info.name for info in recovery.SPEC.values}
    lengths = {"timeout_length_mean_ms", "timeout_length_max_ms"}
    for counter, value, rests in (
        ("TCPLossProbes", "loss_probes", by_timer),
        ("TCPTimeouts", "retransmission_timeouts", by_timer | lengths),
        ("TCPSackRecovery", "recoveries", of_recovery),
        ("TCPSackRecoveryFail", "recovery_timeouts", of_recovery - {"recoveries"}),
    ):
        records = counted(tmp_path, **{counter: 3})
        found = analyse(records).metrics
        gone = {name for name, known in agreed["bulk"].items() if known == known and found["bulk"][name] != known}
        assert gone == {name for name in {value} | rests if agreed["bulk"][name] == agreed["bulk"][name]}
        why = f"sender: {value}: {agreed['bulk'][value]} by its capture, 3 by its kernel"
        assert str(found["*"]["counter_mismatches"]).startswith(why)
        assert instruments_agree(records) == []


def test_a_counter_that_a_kernel_lacks_keeps_no_other_from_being_compared(tmp_path: Path) -> None:
    records = counted(tmp_path, TCPSackRecovery=3)
    for name in ("TCPTimeouts", "TCPLossProbes"):
        del records.counters["sender"]["snmp"][f"TcpExt.{name}"]
    found = analyse(records).metrics
    assert str(found["*"]["counter_mismatches"]).startswith("sender: recoveries: 0 by its capture, 3 by its kernel")
    assert found["bulk"]["loss_probes"] == 1


def test_of_a_recovery_that_time_stamps_ended_early_only_the_count_is_known(tmp_path: Path) -> None:
    """The capture has no sign of where that was."""
    talk = Conversation(delay_us=10_000)
    for n in range(8):
        talk.data(20_000 + n, 1448 * n, arrives=n != 1)
        if n > 1:
            talk.ack(30_000 + n, 1448, sacks=[2 * 1448, (n + 1) * 1448])
    talk.data(40_100, 1448)
    talk.ack(50_100, 8 * 1448)
    write_point(tmp_path, talk.captures())
    counters = {"TCPTimeouts": 0, "TCPLossProbes": 0, "TCPSackRecovery": 1, "TCPRenoRecovery": 0}
    for undone, known in ((0, True), (1, False)):
        records = load_raw(tmp_path)
        snmp = {f"TcpExt.{name}": number for name, number in (counters | {"TCPPartialUndo": undone}).items()}
        records.counters["sender"] = {"snmp": snmp | {"Tcp.InSegs": 8}}
        found = analyse(records).metrics
        got = found["bulk"]
        assert (got["recoveries"], got["recovery_timeouts"]) == (1, 0)
        for name in ("recovery_time_mean_ms", "recovery_segments_sent", "prr_out_ratio_max"):
            assert (got[name] == got[name]) is known
        assert ("TCPPartialUndo" in str(found["*"]["counter_mismatches"])) is not known


@pytest.mark.parametrize(("again_us", "alone"), [(30_000, False), (0, True)])
def test_a_kernel_counts_the_timer_of_a_fin_of_a_flow_that_its_host_receives(
    tmp_path: Path, again_us: int, alone: bool
) -> None:
    talk = Conversation()
    talk.data(1000, 0)
    for at_us in filter(None, (2000, again_us)):
        talk.ack(at_us, 1448, flags=ACK | FIN)
    records = load_raw(write_point(tmp_path, talk.captures()))
    records.counters["receiver"] = {"snmp": {"Tcp.InSegs": 2}}
    assert (counts_alone(records, "receiver"), timers_alone(records, "receiver")) == (True, alone)


def test_a_timer_that_gave_up_sent_nothing(tmp_path: Path) -> None:
    records = counted(tmp_path, TCPTimeouts=1, TCPAbortOnTimeout=1)
    assert analyse(records).metrics["bulk"]["retransmission_timeouts"] == 0


def test_other_connections_of_a_host_are_counted_too_and_make_nothing_null(tmp_path: Path) -> None:
    more = {"TCPLossProbes": 3, "TCPSackRecovery": 3, "RetransSegs": 9}
    records = counted(tmp_path, InSegs=100, **more)
    assert analyse(records).metrics["*"]["counter_mismatches"] == "none"
    assert not any("RetransSegs" in why for why in instruments_agree(records))
    fewer = counted(tmp_path, InSegs=100, TCPLossProbes=0)
    assert "loss_probes: 1 by its capture, 0" in str(analyse(fewer).metrics["*"]["counter_mismatches"])


@pytest.mark.parametrize(
    ("counted_again", "dropped", "right"), [(1, 0, True), (0, 0, False), (2, 0, False), (2, 1, True)]
)
def test_retransmissions_of_capture_and_kernel(tmp_path: Path, counted_again: int, dropped: int, right: bool) -> None:
    """What the host's own queue dropped never left."""
    records = counted(tmp_path, RetransSegs=counted_again)
    records.counters["sender"]["qdisc"] = [{"drops": dropped}]
    reason = f"sender: its capture has 1 retransmissions; its kernel counted {counted_again} (Tcp.RetransSegs)"
    assert instruments_agree(records) == ([] if right else [reason])


def test_a_trace_that_the_kernel_contradicts_makes_the_point_invalid(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "all_instruments", tmp_path / "point")
    records = load_raw(tmp_path / "point")
    assert instruments_agree(records) == []
    records.memo.clear()
    records.counters["sender"]["snmp"]["TcpExt.TCPLossProbes"] += 1
    assert instruments_agree(records) == ["sender: loss_probes: 1 by its trace, 2 by its kernel (TcpExt.TCPLossProbes)"]


def test_challenge_acks_of_either_end_count(tmp_path: Path) -> None:
    """RFC 5961: a sender answers an ACK from before its window with one, a receiver a RST."""
    records = counted(tmp_path)
    for host, number in (("sender", 2), ("receiver", 3)):
        records.counters[host] = {"snmp": {"TcpExt.TCPChallengeACK": number, "TcpExt.TCPOFOQueue": number}}
    got = analyse(records).metrics["bulk"]
    assert (got["kernel_challenge_ack"], got["kernel_ofo_queue"]) == (5, 3)
    records = counted(tmp_path)
    assert np.isnan(analyse(records).metrics["bulk"]["kernel_challenge_ack"]), "the receiver's is not known"
