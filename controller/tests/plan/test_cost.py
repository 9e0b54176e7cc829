# SPDX-License-Identifier: Apache-2.0
"""What a point costs, by its plan: the dry run and nightly runs show the same."""

from __future__ import annotations

import pytest
from testctl.plan import cost_ms, load_plan, overview

PAIR = "topology: pair\nflows: {f: sender -> receiver}\ntuples:\n  - [f, duration, 1s]\n"


def cost(tuples: str = "", plan: str = PAIR) -> int:
    return cost_ms(load_plan(plan + tuples).points[0])


def test_a_point_costs_its_boot_its_seconds_and_its_packets() -> None:
    packets = 1e9 / 8 / 1500 * 1.5
    assert cost() == pytest.approx(3000 + 500 + packets / 40, abs=1)


@pytest.mark.parametrize("limit", ["[switch, rate, 100mbit]", "[sender, htb_rate, 100mbit]", "[f, bytes, 12500000]"])
def test_what_limits_the_traffic_limits_the_cost(limit: str) -> None:
    assert cost(f"  - {limit}\n") == pytest.approx(3500 + 1e8 / 8 / 1500 * 1.5 / 40, abs=500)


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
