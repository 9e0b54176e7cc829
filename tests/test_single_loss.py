# SPDX-License-Identifier: Apache-2.0
"""RFC 6937's example of a single loss, from the packets on the wire: what each recovery sends on each ACK."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan_runs import run_of

pytestmark = pytest.mark.lab

PLAN = Path(__file__).parents[1] / "plans" / "paper" / "rfc6937_single_loss.yaml"

PUBLISHED = {
    "reno_rfc6675": "N N R . . . . . . . . N N N N N N N N",
    "reno_halving": "N N R . N . N . N . N . N . N . N . N",
    "reno_prr": "N N R . N . N . N . N . N . N . . N N",
}
"""RFC 6937, section 3.1, ACKs 1 to 19."""


def test_all_three_rows(tmp_path: Path, release: str) -> None:
    rows = []
    for point in run_of(tmp_path, PLAN, f'hosts.kernel="{release}"').points:
        table = point.packets(["where", "direction", "out", "ack", "length", "retrans", "sack1_start"])
        assert table is not None
        sent: list[str] = []
        for packet in table.to_pylist():
            if packet["where"] != "sender":
                continue
            if not packet["out"] and packet["ack"] == 0 and packet["sack1_start"] >= 0:
                sent.append("")
            elif packet["out"] and packet["length"] and sent:
                sent[-1] += "R" if packet["retrans"] else "N"
        (cc,) = (value for _, name, value in point.point["tuples"] if name == "cc")
        rows.append((cc, " ".join(did or "." for did in sent[:19])))
    assert sorted(rows) == sorted(PUBLISHED.items())
