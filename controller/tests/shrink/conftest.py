# SPDX-License-Identifier: Apache-2.0
"""A finished run of a plan like plans/dctcp_htb.yaml, with numbers made up, and a case of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from testctl.execution.finish import complete
from testctl.execution.options import Options
from testctl.metrics import metric_names
from testctl.plan import Point, load_plan
from testctl.results import PointResult, Run, RunWriter, write_point

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
groups: {ends: [sender, receiver]}
tuples:
  - [ends, cc, [dctcp_bug, dctcp_resched, dctcp]]
  - [ends, tcp_ecn, 1]
  - [all, mtu, 1500]
  - [sender, tso, on]
  - [receiver, gro, on]
  - [receiver, gro_flush, [10us, 50us]]
  - [sender, htb_rate, 2gbit]
  - [sender, htb_ecn_threshold, [3kB, 30kB]]
  - [sender, htb_mark, data]
  - [switch, delay, 5us]
  - [bulk, duration, 100ms]
expect:
  - name: no packet is lost
    metric: packets_lost
    equals: 0
  - name: throughput is steady
    metric: stability_cv_10ms
    max: 0.1
  - name: as steady as with the fix
    metric: stability_cv_10ms
    at_most: 2
    than: {ends.cc: dctcp}
    when: {ends.cc: dctcp_bug}
  - name: some point loses packets
    metric: packets_lost
    min: 1
    quantifier: some
"""
BEFORE = {
    "sender": {"cc": "cubic", "net.ipv4.tcp_ecn": 2, "mtu": 1500, "tso": True, "htb_rate": "none",
               "htb_ecn_threshold": "none", "htb_mark": "data"},
    "receiver": {"cc": "cubic", "net.ipv4.tcp_ecn": 2, "mtu": 1500, "gro": False, "gro_flush": 0},
    "switch": {"mtu": 1500, "switch:receiver delay": 0, "switch:sender delay": 0},
}  # fmt: skip


def unsteady(point: Point) -> bool:
    """Where the made-up fault shows: with that cc, GRO, a threshold of 2 to 4 kB, data marked and MTUs up to 2900."""
    sender, receiver = point.settings["sender"], point.settings["receiver"]
    threshold, mtu = sender.get("htb_ecn_threshold", 0), sender.get("mtu", 1500)
    return (
        sender.get("cc") == "dctcp_bug"
        and receiver.get("gro") is True
        and sender.get("htb_mark", "data") == "data"
        and isinstance(threshold, int) and 2000 <= threshold <= 4000
        and isinstance(mtu, int) and mtu <= 2900
        and "htb_rate" in sender
    )  # fmt: skip


def measured(point: Point) -> dict[str, dict[str, float | str | None]]:
    """The metrics of a point, whose receiver breaks a rule where the fault shows."""
    shows = unsteady(point)
    rules = "ack-moves-back 2" if shows else "none"
    return {"bulk": {"stability_cv_10ms": 0.8 if shows else 0.001, "packets_lost": 0, "rules_violated": rules}}


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Write a run of the plan as it would be with these --set words; the verdicts so far of some of its points."""

    def make(sets: tuple[str, ...] = (), verdicts: dict[int, str] | None = None, text: str = PLAN) -> Run:
        plan = load_plan(text, metrics=metric_names(), overrides=sets)
        writer = RunWriter.create_at(tmp_path / "run", need=0)
        writer.write_plan(text, {"points": [point.to_json() for point in plan.points]})
        for number, point in enumerate(plan.points):
            result = PointResult(
                point=point.to_json(),
                verdict=(verdicts or {}).get(number, "pass"),
                outcome={"entities": {name: {"before": before} for name, before in BEFORE.items()}},
                metrics=measured(point),
            )
            write_point(writer.path, result)
        return complete(plan, writer, Options(tmp_path), datetime.now(UTC), 1.0)

    return make
