# SPDX-License-Identifier: Apache-2.0
"""Applications that read slowly or not at all, that write in pieces, and that give up after some probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from testctl.results import PointResult

from tests.plan_runs import measured, records_of

pytestmark = pytest.mark.lab
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch, rate, 100mbit]
  - [switch, delay, 5ms]
"""


def run(tmp_path: Path, *tuples: str) -> PointResult:
    tmp_path.mkdir(exist_ok=True)
    result = measured(tmp_path / "point", PLAN + "".join(f"  - {one}\n" for one in tuples))
    assert result.verdict == "pass", result.reason
    return result


def counted(result: PointResult, name: str) -> float:
    return float(sum(records_of(result).snmp(host).get(name, 0) for host in ("sender", "receiver")))


def windows(result: PointResult) -> list[dict[str, Any]]:
    """The receiver's packets with a closed window."""
    rows = records_of(result).packets.select(["time_ns", "where", "direction", "window", "out"]).to_pylist()
    return [row for row in rows if row["where"] == "receiver" and row["out"] and row["window"] == 0]


def test_a_receiver_that_pauses_closes_its_window_until_it_reads_again(tmp_path: Path) -> None:
    result = run(tmp_path, "[bulk, read_pause, 1s-3s]", "[bulk, duration, 4s]", "[bulk, receive_buffer, 100kB]")
    closed = windows(result)
    assert closed
    assert all(10**9 < row["time_ns"] < 3 * 10**9 for row in closed)
    assert counted(result, "TcpExt.TCPToZeroWindowAdv") == counted(result, "TcpExt.TCPFromZeroWindowAdv") == 1
    assert counted(result, "TcpExt.TCPWinProbe") > 1


def test_a_receive_buffer_shrinks_while_nothing_is_read(tmp_path: Path) -> None:
    tuples = ("[bulk, read_pause, 1s-3s]", "[bulk, duration, 4s]", "[bulk, receive_buffer, 400kB]")
    result = run(tmp_path / "shrinks", *tuples, "[bulk, receive_buffer_later, 4kB at 1010ms]")
    (server,) = result.outcome["flows"]["bulk"]["server"]["connections"]
    assert server["receive_buffer"] == 8000
    whole = run(tmp_path / "keeps", *tuples)
    assert counted(result, "TcpExt.TCPRcvQDrop") + counted(result, "TcpExt.TCPZeroWindowDrop") > 0
    assert counted(whole, "TcpExt.TCPRcvQDrop") + counted(whole, "TcpExt.TCPZeroWindowDrop") == 0


def test_a_slow_receiver_sets_the_rate(tmp_path: Path) -> None:
    result = run(tmp_path, "[bulk, read_rate, 8mbit]", "[bulk, bytes, 4MB]", "[bulk, receive_buffer, 100kB]")
    assert 3.8 < float(result.metrics["bulk"]["completion_time_s"] or 0) < 4.05
    assert counted(result, "TcpExt.TCPWantZeroWindowAdv") + counted(result, "TcpExt.TCPToZeroWindowAdv") > 0


def test_requests_are_written_in_pieces(tmp_path: Path) -> None:
    """Two of Nagle's small writes: the second waits for the delayed ACK of the first."""
    tuples = ("[bulk, requests, 40]", "[bulk, connections, 1]", "[bulk, reverse, on]", "[bulk, sizes, 700B]",
              "[bulk, every, 60ms]", "[bulk, write_size, 300B]")  # fmt: skip
    slow = run(tmp_path / "slow", *tuples)
    fast = run(tmp_path / "fast", *tuples, "[bulk, nodelay, on]")
    times = [float(one.metrics["bulk"]["fct_all_p50_us"] or 0) / 1000 for one in (slow, fast)]
    assert times[0] > 45 > 25 > times[1]


def test_keepalive_probes_end_a_connection(tmp_path: Path) -> None:
    result = run(tmp_path, "[bulk, keepalive, 2s]", "[bulk, keepalive_probes, 3]", "[switch, down, 1s-60s]",
                 '[bulk, pattern, "schedule 0s:1448B,30s:1448B"]')  # fmt: skip
    assert result.metrics["bulk"]["failure"] == "ETIMEDOUT"
    assert 8 <= float(result.metrics["bulk"]["failure_time_s"] or 0) < 9
