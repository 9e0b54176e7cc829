# SPDX-License-Identifier: Apache-2.0
"""What a point costs, by its plan: the dry run and nightly runs show the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from testctl.execution.options import Options
from testctl.execution.run import run_plan
from testctl.plan import cost_ms, load_plan, overview
from testctl.plan.cost import disk_bytes, memory_bytes, rows
from testctl.report import Progress
from testctl_agent.spec.errors import TestbedError

from controller.tests.execution.testbeds import Hashing

PAIR = "topology: pair\nflows: {f: sender -> receiver}\ntuples:\n  - [f, duration, 1s]\n"


def cost(tuples: str = "", plan: str = PAIR) -> int:
    return cost_ms(load_plan(plan + tuples).points[0])


def test_a_point_costs_its_boot_its_seconds_and_its_packets() -> None:
    packets = 1e9 / 8 / 1500 * 1.5
    assert cost() == pytest.approx(2000 + 20 + packets / 150, abs=1)


@pytest.mark.parametrize("limit", ["[switch, rate, 100mbit]", "[sender, htb_rate, 100mbit]", "[f, bytes, 12500000]"])
def test_what_limits_the_traffic_limits_the_cost(limit: str) -> None:
    assert cost(f"  - {limit}\n") == pytest.approx(2020 + 1e8 / 8 / 1500 * 1.5 / 150, abs=20)


def test_every_further_agent_costs() -> None:
    star = "topology: star\nflows: {f: h1 -> h2}\ntuples:\n  - [f, duration, 1s]\n"
    plan = load_plan(star)
    more = len(plan.topology.hosts) + len(plan.topology.switches) - 3
    assert more > 0
    assert cost(plan=star) == cost() + 800 * more


def test_the_dry_run_shows_the_sum() -> None:
    plan = load_plan(PAIR + "  - [sender, cc, [cubic, reno]]\n")
    assert overview(plan).wall_s == sum(map(cost_ms, plan.points)) / 1000


def test_by_the_wall_clock_a_second_is_a_second_and_a_packet_is_only_read() -> None:
    plan = load_plan(PAIR + "  - [switch, rate, 10gbit]\n", testbed="inventory/mine")
    packets = 1e10 / 8 / 1500 * 1.5
    assert cost_ms(plan.points[0], plan.testbed) == pytest.approx(2600 + 1000 + packets / 1000, abs=1)
    assert overview(plan).wall_s == cost_ms(plan.points[0], plan.testbed) / 1000


@pytest.mark.parametrize(
    ("tuples", "places"),
    [
        ("", 3),  # both hosts and the switch
        ("  - [hosts, capture, off]\n", 1),
        ("  - [switch, telemetry, off]\n  - [receiver, capture, off]\n", 1),
        ("  - [switch, telemetry, off]\n  - [hosts, capture, off]\n", 0),
    ],
)
def test_rows_are_those_of_who_records(tuples: str, places: int) -> None:
    plan = load_plan(PAIR + "  - [switch, rate, 100mbit]\n" + tuples)
    packets = 1e8 / 8 / 1500 * 1.5
    assert rows(plan.points[0]) == pytest.approx(places * packets, abs=1)
    assert memory_bytes(plan.points[0]) == rows(plan.points[0]) * 300
    assert disk_bytes(plan.points, 2) == 1_000_000 + rows(plan.points[0]) * (25 + 2 * 150)


def test_flows_share_a_link_and_have_others_alone() -> None:
    star = "topology: {star: {hosts: 5}}\nflows: {f: h1 -> h2, g: h3 -> %s}\ntuples:\n  - [switch, rate, 100mbit]\n"
    star += "  - [flows, duration, 1s]\n"
    shared, apart = load_plan(star % "h2").points[0], load_plan(star % "h4").points[0]
    assert rows(apart) == pytest.approx(2 * rows(shared), abs=1)
    assert rows(shared) == pytest.approx(3 * 1e8 / 8 / 1500 * 1.5, abs=1)


def test_a_point_that_is_too_large_for_the_machine_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    plan = load_plan(PAIR.replace("1s", "18000s"))
    there = "this machine has .* GB free"
    with pytest.raises(
        TestbedError, match=f"has about 6,750,000,000 rows of packets, .* 2025.0 GB of memory .*{there}"
    ):
        run_plan(plan, Hashing(tmp_path), Options(tmp_path / "results"), Progress(1, Console()))
    assert list(tmp_path.iterdir()) == []


def test_points_that_run_at_once_need_memory_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan(PAIR.replace("1s", "[18s, 20s]"))
    needs = [memory_bytes(point) >> 20 for point in plan.points]
    monkeypatch.setattr("testctl.execution.run.free_mb", lambda: sum(needs) - 10)
    with pytest.raises(TestbedError, match=r"its 2 largest points, which run at once, take .* want fewer --jobs, or a"):
        run_plan(plan, Hashing(tmp_path), Options(tmp_path / "results", jobs=2), Progress(1, Console()))
    assert list(tmp_path.iterdir()) == []
