# SPDX-License-Identifier: Apache-2.0
"""Requests with made-up times: completion times, slowdowns by size, and what makes a point invalid."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.core.outcome import HostClock
from testctl.curves import series
from testctl.metrics import analyse, completions, instruments_agree
from testctl.plan import load_plan
from testctl.records import Records, RecordsError, make_records
from testctl.records.store import Outcome
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec import workload

T0_NS = 10**18
PLAN = """topology: pair
flows: {web: sender -> receiver}
tuples: [[switch:receiver, rate, 1gbit], [switch, delay, 50us], [web, sizes, "0B:0 1kB:0.5 20MB:1"],
  [web, requests, 400], [web, arrival_rate, 2], [hosts, capture, off], [hosts, tcp_info, off], [switch, telemetry, off]]
"""
START_NS = 1000


def made(
    tmp_path: Path, *, late_ns: int = 0, lost: int = 0, wrote: int = 0, slow: float = 3.0, **outcome: Any
) -> Records:
    """All requests take `slow` times the ideal and begin at once, but for the last one."""
    (point,) = load_plan(PLAN, metrics={}).points
    requests = workload.requests(point.flows[0].options, workload.stream_of(point.seed, "web", {}))
    due = [T0_NS + START_NS + request.at_ns for request in requests]
    took = [round(slow * (50_000 + (request.up + -(-request.up // 1448) * 66) * 8)) for request in requests]
    begun = [(at, 0) for at in due[:-1]] + [(due[-1] + late_ns, 0)]
    ended = [(0, at + length) for at, length in zip(due, took, strict=True)]
    ended[-lost:] = [(0, 0)] * lost if lost else ended
    for where, times in (("sender/web-client", begun), ("receiver/web-server", ended)):
        (tmp_path / where).mkdir(parents=True)
        (tmp_path / where / "times.bin").write_bytes(b"".join(struct.pack("<qq", *pair) for pair in times))
    total = sum(request.up for request in requests)
    ends = {"client": {"role": "sender", "bytes": total + wrote, "start_ns": T0_NS + START_NS},
            "server": {"role": "receiver", "bytes": total}}  # fmt: skip
    became = Outcome.from_json({"t0_ns": T0_NS, "addresses": {"sender": "10.0.0.1", "receiver": "10.0.0.2"},
                                "flows": {"web": ends}})  # fmt: skip
    return make_records(spec_of(point), became, tmp_path)


def test_every_request_is_so_much_slower_than_on_an_empty_path(tmp_path: Path) -> None:
    records = made(tmp_path)
    got = analyse(records).metrics["web"]
    found = completions(records, "web")
    assert found is not None
    classes = {name: int(found.of_class(name).sum()) for name in ("all", "small", "medium", "large")}
    assert classes["all"] == 400 == classes["small"] + classes["medium"] + classes["large"]
    assert min(classes.values()) > 80
    for name in classes:
        slowdowns = [got[f"slowdown_{name}_{part}"] for part in ("mean", "p50", "p999")]
        assert slowdowns == pytest.approx([3.0] * 3, rel=1e-4)
    took = np.sort(found.took_ns) / 1e3
    assert [got[f"fct_all_{tail}_us"] for tail in ("p50", "p95", "p99", "p999")] == [
        took[199], took[379], took[395], took[399],
    ]  # fmt: skip
    assert got["requests_completed"] == 400
    assert got["request_rate"] == pytest.approx(2, rel=0.1)
    assert math.isnan(float(got["throughput_bps"]))
    assert instruments_agree(records) == []


def test_the_records_and_their_digest_are_kept(tmp_path: Path) -> None:
    records = made(tmp_path / "raw")
    kept = tmp_path / "kept"
    records.save(kept)
    (kept / "point.json").write_text(json.dumps(records.point.to_json()))
    (kept / "outcome.json").write_text(json.dumps(records.outcome.to_json()))
    again = Records.load(kept)
    assert again.digest() == records.digest()
    assert again.requests is not None
    assert again.requests.equals(records.requests)
    other = made(tmp_path / "other", slow=3.1)
    assert other.digest() != records.digest()
    table = series(again, "web", "fct", 0)
    assert table.num_rows == 400
    assert table.column_names == ["time_ns", "fct_us", "fct_us_max"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"late_ns": 2_000_000}, "flow web: 1 of 400 requests began late, one by 2 ms"),
        ({"late_ns": -1}, "flow web: 1 of 400 requests began before they came, one by 1e-06 ms"),
        ({"lost": 3}, "flow web: 3 of 400 requests did not end"),
        ({"wrote": 5}, "flow web: its requests have {total} bytes; the sender wrote {more}"),
    ],
)
def test_what_did_not_happen_as_asked_makes_the_point_invalid(tmp_path: Path, given: Any, why: str) -> None:
    records = made(tmp_path, **given)
    assert records.requests is not None
    total = int(np.sum(records.requests.column("up").to_numpy()))
    assert instruments_agree(records) == [why.format(total=total, more=total + 5)]
    assert analyse(records).metrics["web"]["requests_completed"] == 400 - given.get("lost", 0)


def test_times_of_another_number_of_requests_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    path = tmp_path / "receiver/web-server/times.bin"
    path.write_bytes(path.read_bytes()[:-16])
    (point,) = load_plan(PLAN, metrics={}).points
    with pytest.raises(RecordsError, match=r"times.bin: want the times of 400 requests; got 399"):
        make_records(spec_of(point), Outcome(t0_ns=T0_NS), tmp_path)


def test_clocks_that_are_apart_are_taken_off(tmp_path: Path) -> None:
    records = made(tmp_path)
    records.outcome.clocks = {"sender": HostClock(0, 0.0), "receiver": HostClock(40_000, 0.0)}
    found = completions(records, "web")
    assert found is not None
    ideal = found.ideal_ns
    assert np.allclose(found.took_ns, 3 * ideal - 40_000, atol=2)
