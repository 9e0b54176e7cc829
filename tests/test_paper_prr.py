# SPDX-License-Identifier: Apache-2.0
"""Heavy loss of 32 KiB (5, 9 and 10 of ten packets arrive), from the packets on the wire: PRR beside rate halving."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.results import RunPoint

from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

PLAN = """\
about: Heavy loss, two recoveries
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic_prr, cubic_halving]]
  - [hosts, net.ipv4.tcp_recovery, 0]
  - [hosts, net.ipv4.tcp_early_retrans, 0]
  - [hosts, net.ipv4.tcp_comp_sack_nr, 0]
  - [hosts, net.ipv4.tcp_min_tso_segs, 1]
  - [sender, initcwnd, 10]
  - [hosts, tso, off]
  - [hosts, gro, off]
  - [hosts, capture, on]
  - [switch, rate, 100mbit]
  - [switch, delay, 25ms]
  - [switch, fate, "drop data 1-4,6-8 of bulk, first"]
  - [bulk, bytes, 32KiB]
expect:
  - {name: seven packets are lost, metric: packets_lost, equals: 7}
"""


def sent(point: RunPoint) -> tuple[list[str], float]:
    """What left on each ACK from the first duplicate to the repair, and when the last byte left (s)."""
    table = point.packets(["time_ns", "where", "direction", "out", "ack", "length", "retrans", "sack1_start"])
    assert table is not None
    rows = [row for row in table.to_pylist() if row["where"] == "sender"]
    answers: list[str] = []
    missing = False
    for row in rows:
        if not row["out"]:
            missing = row["sack1_start"] >= 0
            answers += [""] * missing
        elif row["length"] and missing:
            answers[-1] += "R" if row["retrans"] else "N"
    times = [row["time_ns"] for row in rows if row["out"] and row["length"]]
    return answers, (times[-1] - times[0]) / 1e9


def test_heavy_loss_holds_rate_halving_back(tmp_path: Path) -> None:
    found = {}
    for point in run_of(tmp_path, PLAN).points:
        (cc,) = (value for _, name, value in point.point["tuples"] if name == "cc")
        found[cc] = sent(point)
    (prr, prr_s), (halving, halving_s) = found["cubic_prr"], found["cubic_halving"]
    assert max(map(len, prr)) == 2
    assert max(map(len, halving)) == 1
    assert "".join(halving) == "NN" + 7 * "R" + "NN"
    assert "".join(prr).startswith("NN" + 7 * "R" + 3 * "N")
    assert halving_s > 1.4 * prr_s
