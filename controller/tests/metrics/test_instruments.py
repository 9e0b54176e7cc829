# SPDX-License-Identifier: Apache-2.0
"""Instruments that do not agree are named, with what each says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.core.outcome import FlowOutcome, Outcome
from testctl.metrics import instruments_agree
from testctl.records import Records, load_raw
from testctl_agent.wire.results import FlowEnd

from controller.tests.support.synthetic import bulk, write_point

FIXTURES = Path(__file__).parent / "fixtures"
BYTES = 1448 * 1000


def point(tmp_path: Path, captures: dict[str, Any] | None = None, **ends: Any) -> Records:
    write_point(tmp_path, captures or bulk(1000))
    records = load_raw(tmp_path)
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


@pytest.mark.parametrize("older", [False, True])
def test_dropped_packets_of_a_capture(tmp_path: Path, older: bool) -> None:
    """As the collector returns them; an older version kept that as text among the notes."""
    records = point(tmp_path)
    captures = {"receiver": {"dropped": 3}, "sender": {"dropped": 0}}
    notes = {f"{host}: capture": json.dumps(said) for host, said in captures.items()}
    collected = {host: {"capture": said} for host, said in captures.items()}
    told = Outcome.from_json({"notes": notes} if older else {"collected": collected})
    records.outcome = replace(records.outcome, collected=told.collected)
    assert instruments_agree(records) == ["receiver: the capture dropped 3 packets"]


def test_generator_that_counts_otherwise(tmp_path: Path) -> None:
    ends = {
        "client": {"role": "sender", "bytes": BYTES - 1000},
        "server": {"role": "receiver", "bytes": BYTES + 1},
    }
    assert instruments_agree(point(tmp_path, **ends)) == [
        f"flow bulk: sender's capture has {BYTES} bytes of payload; its generator wrote {BYTES - 1000}",
        f"flow bulk: sender's capture has {BYTES} bytes of payload; receiver read {BYTES + 1}",
        f"flow bulk: receiver's capture has {BYTES} bytes of payload; receiver read {BYTES + 1}",
    ]


def test_a_result_that_says_no_bytes_is_not_compared(tmp_path: Path) -> None:
    assert instruments_agree(point(tmp_path, client={"role": "sender", "connections": [{"bytes_sent": 5}]})) == []


def test_content_that_is_not_what_was_sent(tmp_path: Path) -> None:
    said = instruments_agree(point(tmp_path, server={"connections": [{"verified": False, "bad_offset": 17}]}))
    assert said == ["flow bulk: the receiver read other bytes than were sent at byte 17"]


def test_generator_that_failed(tmp_path: Path) -> None:
    said = instruments_agree(point(tmp_path, client={"error": "can't connect"}))
    assert said == ["flow bulk: its generator failed: can't connect"]


@pytest.mark.parametrize("where", ["sender", "receiver"])
def test_hole_in_a_capture(tmp_path: Path, where: str) -> None:
    captures = bulk(1000)
    row = int(np.flatnonzero((captures[where]["length"] > 0) & (captures[where]["src"] == 0))[500])
    (said,) = instruments_agree(point(tmp_path, without(captures, where, row)))
    assert said == (
        f"flow bulk: {where}'s capture has bytes up to {1448 * 500} of connection 0; {BYTES} were acknowledged"
    )


def test_kernel_that_counted_more_than_was_captured(tmp_path: Path) -> None:
    records = point(tmp_path)
    records.counters["receiver"] = {"snmp": {"Tcp.InSegs": 1500, "IpExt.InNoECTPkts": 0, "IpExt.InECT0Pkts": 1001}}
    assert instruments_agree(records) == [
        "receiver: its capture has 1001 arriving packets; its kernel counted 1500 (Tcp.InSegs)"
    ]


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
    (said,) = instruments_agree(records)
    assert said == f"flow apart: no capture (receiver) has a packet of it; receiver read {BYTES} bytes"
