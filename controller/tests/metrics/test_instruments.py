# SPDX-License-Identifier: Apache-2.0
"""Instruments that do not agree are named, with what each says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.metrics import instruments_agree
from testctl.records import Records, load_raw

from controller.tests.support.synthetic import bulk, write_point

FIXTURES = Path(__file__).parent / "fixtures"
BYTES = 1448 * 1000


def point(tmp_path: Path, captures: dict[str, Any] | None = None, **flow: Any) -> Records:
    write_point(tmp_path, captures or bulk(1000))
    records = load_raw(tmp_path)
    if flow:
        records.outcome["flows"] = {"bulk": flow}
    return records


def without(captures: dict[str, Any], where: str, row: int) -> dict[str, Any]:
    keep = np.arange(len(captures[where]["time_ns"])) != row
    return {**captures, where: {name: column[keep] for name, column in captures[where].items()}}


def test_agreeing_instruments_have_nothing_to_say(tmp_path: Path) -> None:
    assert instruments_agree(point(tmp_path)) == []
    ends = [
        {"role": "sender", "error": None, "bytes": BYTES, "connections": [{"verified": None}]},
        {"role": "receiver", "error": None, "bytes": BYTES, "connections": [{"verified": True}]},
    ]
    assert instruments_agree(point(tmp_path, ends=ends)) == []
    assert instruments_agree(load_raw(FIXTURES / "loss")) == []


@pytest.mark.parametrize("place", ["outcome", "notes"])
def test_dropped_packets_of_a_capture(tmp_path: Path, place: str) -> None:
    records = point(tmp_path)
    dropped = {"captures": {"receiver": {"dropped": 3}, "sender": {"dropped": 0}}}
    records.outcome |= dropped if place == "outcome" else {"notes": dropped}
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
    assert instruments_agree(point(tmp_path, end={"role": "sender", "connections": [{"bytes_sent": 5}]})) == []


def test_content_that_is_not_what_was_sent(tmp_path: Path) -> None:
    said = instruments_agree(point(tmp_path, connections=[{"verified": False, "bad_offset": 17}]))
    assert said == ["flow bulk: the receiver read other bytes than were sent at byte 17"]


def test_generator_that_failed(tmp_path: Path) -> None:
    said = instruments_agree(point(tmp_path, error="can't connect"))
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


def test_a_flow_whose_hosts_were_not_captured_is_not_held_against_it(tmp_path: Path) -> None:
    records = point(tmp_path)
    apart = {**records.point["flows"][0], "name": "apart", "from": "other", "to": "another"}
    records.point["flows"].append(apart)
    records.outcome["flows"] = {"apart": [{"role": "receiver", "bytes": BYTES}]}
    assert instruments_agree(records) == []
    apart["to"] = "receiver"  # captured, but not a packet of it
    records.memo.clear()
    (said,) = instruments_agree(records)
    assert said == f"flow apart: no capture (receiver) has a packet of it; receiver read {BYTES} bytes"
