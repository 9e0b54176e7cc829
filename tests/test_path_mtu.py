# SPDX-License-Identifier: Apache-2.0
"""plans/path_mtu.yaml in the lab: TCP follows the switch's ICMP at once, over IPv4 and IPv6, and stops without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.results import RunPoint

from tests.plan_runs import measured, records_of
from tests.test_fates import run

pytestmark = pytest.mark.lab
SECOND_NS = 10**9
RTT_NS = 10_000_000
"""Of the plan's delays; the queue comes on top."""


def _data(point: RunPoint) -> list[dict[str, int]]:
    """The data packets that came to the switch, in order."""
    table = point.packets(["where", "length", "time_ns", "left_ns", "wire_bytes"])
    assert table is not None
    return [row for row in table.to_pylist() if row["where"] == "switch" and row["length"]]


def test_a_sender_has_smaller_packets_a_round_trip_after_the_message(tmp_path: Path) -> None:
    code, one = run(tmp_path, "path_mtu.yaml", "one")
    assert (code, len(one.points)) == (0, 4), json.dumps(one.summary["expectations"], indent=1)
    for silent, answered in (one.points[:2], one.points[2:]):
        later = [row for row in _data(silent) if SECOND_NS <= row["time_ns"] < SECOND_NS * 5 // 2]
        assert later
        assert {row["left_ns"] for row in later} == {-1}, "nothing passes without a message"
        later = [row for row in _data(answered) if row["time_ns"] >= SECOND_NS]
        passed = [row for row in later if row["left_ns"] >= 0]
        lost = [row for row in later if row["left_ns"] < 0]
        assert max(row["wire_bytes"] for row in passed) == 1400 + 14
        assert max(row["time_ns"] for row in lost) - lost[0]["time_ns"] <= RTT_NS, (
            "what was under way is all that is lost"
        )
        assert 0 < passed[0]["time_ns"] - lost[0]["time_ns"] <= RTT_NS
    code, again = run(tmp_path, "path_mtu.yaml", "again", "bulk.family=4")
    assert [point.digest for point in again.points] == [point.digest for point in one.points[:2]]


def test_a_path_below_the_least_of_ipv6(release: str, tmp_path: Path) -> None:
    """The kernel takes IPv6 from such a device; a host without IPv6 is as before afterwards."""
    values = {"hosts.kernel": release, "all.mtu": 576, "bulk.bytes": "10kB"}
    plan = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n"
    plan += "".join(f"  - [{', '.join(name.split('.'))}, {json.dumps(value)}]\n" for name, value in values.items())
    result = measured(tmp_path / "point", plan)
    assert records_of(result).outcome.drift == []
    assert result.metrics["bulk"]["mss_wire_bytes"] == 576 - 20 - 20 - 12
