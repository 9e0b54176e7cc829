# SPDX-License-Identifier: Apache-2.0
"""A made-up run: steady points, and points that stall 200 ms because of a withheld ACK."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from testctl.core.outcome import Outcome
from testctl.core.point import PointSpec
from testctl.metrics import analyse
from testctl.records import PACKETS, TCP_INFO, Records
from testctl.records.schema import ACK, ECE, names_column
from testctl.report.page import render_report
from testctl.results import PointResult, Run, RunWriter, build_summary, load_point, load_run, set_verdict, write_point

MSS = 1448
RTO_NS = 200_000_000
DELAY_NS = 10_000
HOSTS = ["sender", "receiver"]

PLAN = """\
# SPDX-License-Identifier: Apache-2.0
about: <script>alert("x")</script> DCTCP & a rate limiter
topology: pair
flows: {bulk: sender -> receiver}
groups: {ends: [sender, receiver]}
tuples:
  - [ends, cc, [dctcp_bug, dctcp, dctcp_resched]]
  - [sender, htb_mark, [data, ack]]
  - [sender, htb_rate, 2gbit]
  - [sender, htb_ecn_threshold, [10kB, 30kB]]
figures:
  - title: "Figure 2. Marking data, with the bug"
    bin: 10ms
    when: {ends.cc: dctcp_bug, sender.htb_mark: data, sender.htb_ecn_threshold: 10kB}
  - {title: "Figure 3. Marking ACKs", kind: throughput, when: {ends.cc: dctcp_bug, sender.htb_mark: ack}}
  - title: "Figure 7. Marking data, with the fix"
    when: {ends.cc: dctcp_resched, sender.htb_mark: data}
  - title: "Figure 4. Sequence number, with the bug"
    kind: sequence
    flow: bulk
    when: {ends.cc: dctcp_bug, sender.htb_mark: [data], sender.htb_ecn_threshold: 10000B}
"""


def make_records(point: dict[str, Any], *, stalls: bool, rate_bps: float, seed: int) -> Records:
    """Records of one flow "bulk"; with `stalls` an ACK is forgotten every now and then."""
    rng = np.random.default_rng(seed)
    duration = int(point["duration_ns"])
    gap = round((MSS + 66) * 8e9 / rate_bps)
    rows: list[np.ndarray[Any, Any]] = []
    start, seq = 200_000, 0
    while start < duration:
        length = int(rng.integers(20_000_000, 90_000_000)) if stalls else duration - start
        count = max(min(length, duration - start) // gap, 1)
        sent = start + np.arange(count) * gap + rng.integers(0, gap // 4, count)
        at = seq + MSS * np.arange(count)
        rows += [
            _rows(sent, 0, 0, at, MSS, 0, True),
            _rows(sent + DELAY_NS + _queueing(rng, count), 1, 0, at, MSS, 0, False),
        ]
        acked = np.arange(1, count, 2)  # an ACK for every second packet; the ACK of an odd one is pending
        back = sent[acked] + DELAY_NS + 12_000
        rows += [
            _rows(back, 1, 1, 0, 0, at[acked] + MSS, True),
            _rows(back + DELAY_NS, 0, 1, 0, 0, at[acked] + MSS, False),
        ]
        last = int(sent[-1])
        seq += MSS * count
        if stalls and last + RTO_NS + 100_000 < duration:
            first = seq - MSS if count % 2 else seq - 2 * MSS
            if not count % 2:  # remove the last ACK: it is the pending one
                rows = [*rows[:-2], *(part[:, :-1] for part in rows[-2:])]
            again = last + RTO_NS + int(rng.integers(0, 4_000_000))
            rows += [_rows(np.array([again]), 0, 0, first, MSS, 0, True, retrans=1)]
            rows += [_rows(np.array([again + DELAY_NS]), 1, 0, first, MSS, 0, False, retrans=1)]
            rows += [_rows(np.array([again + 11_000]), 1, 1, 0, 0, seq, True)]
            rows += [_rows(np.array([again + 21_000]), 0, 1, 0, 0, seq, False)]
            start = again + 100_000
        else:
            start = duration
    packets = _packets(np.concatenate(rows, axis=1))
    return Records(packets, _tcp_info(duration, stalls, rng), {}, Outcome(end_ns=duration), PointSpec.from_json(point))


def _queueing(rng: np.random.Generator, count: int) -> Any:
    return np.minimum(rng.exponential(3_000, count).astype(np.int64), 5_000)


def _rows(time: Any, where: int, direction: int, seq: Any, length: int, ack: Any, out: bool, retrans: int = 0) -> Any:
    return np.stack(np.broadcast_arrays(time, where, direction, seq, length, ack, int(out), retrans))


def _packets(columns: Any) -> pa.Table:
    time, where, direction, seq, length, ack, out, retrans = columns[:, np.lexsort((columns[6], columns[0]))]
    count = len(time)
    data = length > 0
    mark = data & (np.arange(count) % 40 < 9)
    given = {
        "time_ns": time,
        "where": names_column(where, HOSTS),
        "flow": names_column(np.zeros(count, int), ["bulk"]),
        "direction": direction,
        "seq": seq,
        "ack": ack,
        "length": length,
        "segs": 1,
        "wire_bytes": length + 66,
        "flags": np.where(~data & (np.arange(count) % 40 < 9), ACK | ECE, ACK),
        "ecn": np.where(mark & (where == 1), 3, np.where(data, 2, 0)),
        "window": 3_000_000,
        "retrans": retrans.astype(bool),
        "out": out.astype(bool),
        "conn": 0,
        "fate": 0,
    }
    full = {name: given.get(name, -1) for name in PACKETS.names}
    spread = {n: np.full(count, v) if isinstance(v, int) else v for n, v in full.items()}
    arrays = [c if isinstance(c, pa.Array) else pa.array(c).cast(PACKETS.field(n).type) for n, c in spread.items()]
    return pa.Table.from_arrays(arrays, schema=PACKETS)


def _tcp_info(duration: int, stalls: bool, rng: np.random.Generator) -> pa.Table:
    time = np.arange(0, duration, 1_000_000)
    count = len(time)
    saw = (time // 1_000_000 % 37) if stalls else 8 + (time // 1_000_000 % 5)
    given = {
        "time_ns": time,
        "conn": 0,
        "snd_cwnd": 10 + saw,
        "rtt": 60 + rng.integers(0, 40, count),
        "state": 1,
        "rto": 204_000,
    }
    columns: list[Any] = []
    for field in TCP_INFO:
        if field.name in ("where", "flow"):
            columns.append(names_column(np.zeros(count, int), ["sender" if field.name == "where" else "bulk"]))
        else:
            columns.append(pa.array(np.broadcast_to(np.asarray(given.get(field.name, -1)), count)).cast(field.type))
    return pa.Table.from_arrays(columns, schema=TCP_INFO)


def make_run(
    results: Path,
    *,
    duration_ns: int = 700_000_000,
    rate_bps: float = 100e6,
    thresholds: Sequence[str] = ("10kB", "30kB"),
    name: str = "dctcp_htb",
) -> Run:
    """A complete run of 3 x 2 x thresholds points, and one broken and one skipped point."""
    writer = RunWriter.create(results, name, now=datetime(2026, 1, 31, 12, 0, tzinfo=UTC))
    writer.write_plan(PLAN, {})
    versions = {"testctl": "0.1.0", "commit": "0123abc", "kernel": "6.12.117", "tools": {"tgen": "1"}}
    writer.write_versions(versions)
    order: list[str] = []
    for cc in ("dctcp_bug", "dctcp", "dctcp_resched"):
        for mark in ("data", "ack"):
            for threshold in thresholds:
                order.append(_add_point(writer, len(order), cc, mark, threshold, duration_ns, rate_bps))
    for index, verdict in enumerate(("broken", "skip")):
        point = _point(f"ffffffffff0{index}", "dctcp", "data", f"{50 + index}kB", duration_ns)
        write_point(
            writer.path, PointResult(point, verdict, reason=f"the lab was killed <after> {index} s & printed no more")
        )
        order.append(point["id"])
    bad = order[: len(thresholds)]
    expectations = [
        {"name": "the bug oscillates", "verdict": "pass", "detail": "90 times as much", "points": bad},
        {"name": "marking data is steady <b>", "verdict": "fail", "detail": "got 0.9", "points": bad},
    ]
    set_verdict(
        load_point(writer.path / "points" / bad[0]),
        "fail",
        "marking data is steady: stability_cv_10ms: want at most 0.05; got 0.9",
    )
    summary = build_summary(
        writer.path,
        plan=name,
        started=datetime(2026, 1, 31, 12, 0, tzinfo=UTC),
        wall_s=61.5,
        versions=versions,
        expectations=expectations,
        order=order,
        about='<script>alert("x")</script> DCTCP & a rate limiter',
    )
    return load_run(writer.finish(summary))


def _point(point_id: str, cc: str, mark: str, threshold: str, duration_ns: int) -> dict[str, Any]:
    flow = {"name": "bulk", "from": "sender", "to": "receiver", "generator": "tgen", "parallel": 1, "options": {}}
    flow |= {"server_port": 5201, "client_port": 50000}
    tuples = [
        ["ends", "cc", cc],
        ["sender", "htb_mark", mark],
        ["sender", "htb_rate", "2gbit"],
        ["sender", "htb_ecn_threshold", threshold],
    ]
    settings = {
        "sender": {
            "cc": cc,
            "htb_mark": mark,
            "htb_rate": 2_000_000_000,
            "htb_ecn_threshold": int(threshold[:-2]) * 1000,
        },
        "receiver": {"cc": cc},
    }
    point = {"id": point_id, "tuples": tuples, "settings": settings, "flows": [flow], "topology": {}, "repeat": 0}
    return {**point, "duration_ns": duration_ns}


def _add_point(
    writer: RunWriter, index: int, cc: str, mark: str, threshold: str, duration_ns: int, rate_bps: float
) -> str:
    point = _point(f"{(index + 1) * 2654435761 % 16**12:012x}", cc, mark, threshold, duration_ns)
    stalls = cc == "dctcp_bug" and mark == "data"
    records = make_records(point, stalls=stalls, rate_bps=rate_bps, seed=index)
    analysis = analyse(records)
    result = PointResult(
        point,
        "pass",
        code_key="code",
        wall_s=2.1,
        virtual_s=duration_ns / 1e9,
        metrics=analysis.metrics,
        records=records,
        stalls=analysis.stalls,
    )
    write_point(writer.path, result)
    return str(point["id"])


@pytest.fixture(scope="package")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A complete run of 14 points; not to be changed."""
    return make_run(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="package")
def html(run: Run) -> str:
    """Its page."""
    return render_report(run)
