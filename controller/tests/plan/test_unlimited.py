# SPDX-License-Identifier: Apache-2.0
"""A flow that nothing limits is named before a lab boots, with the tuple that limits it; a limited one never is."""

from __future__ import annotations

import pytest
from testctl.plan import load_plan
from testctl.plan.remarks import remarks
from testctl.plan.unlimited import unlimited_flows

PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 1s]\n"


def said(*tuples: str, testbed: str = "lab") -> list[str]:
    text = PLAN + "".join(f"  - {one}\n" for one in tuples)
    return unlimited_flows(load_plan(text.encode(), testbed=testbed))


def test_the_flow_its_place_and_what_limits_it() -> None:
    (found,) = said()
    assert found.startswith("<plan>:2:9: flow bulk has no limit: no port on its way has a rate, ")
    assert found.endswith("want a tuple such as [switch:receiver, rate, 1gbit], or [bulk, rate, 100mbit]")


@pytest.mark.parametrize(
    "limit",
    [
        "[switch:receiver, rate, 1gbit]",
        "[switch, rate, 1gbit]",
        "[sender, htb_rate, 1gbit]",
        "[bulk, rate, 1gbit]",
        "[bulk, bytes, 1MB]",
        "[switch, delay, 10ms]",
    ],
)
def test_what_limits(limit: str) -> None:
    assert said(limit) == []


def test_a_link_that_is_down_all_the_time_limits() -> None:
    assert said("[switch:receiver, rate, 1gbit]", "[switch:receiver, down, 0s-9s]") == []


@pytest.mark.parametrize(
    "limit",
    ["[switch:sender, rate, 1gbit]", "[receiver, htb_rate, 1gbit]", "[switch, delay, 10us]", "[switch, rate, none]"],
)
def test_what_does_not(limit: str) -> None:
    assert len(said(limit)) == 1


def test_a_reversed_flow_goes_the_other_way() -> None:
    assert len(said("[bulk, reverse, on]", "[switch:receiver, rate, 1gbit]")) == 1
    assert said("[bulk, reverse, on]", "[switch:sender, rate, 1gbit]") == []


def test_some_points_of_a_sweep() -> None:
    (found,) = said("[switch:receiver, rate, [1gbit, none]]")
    assert "flow bulk has no limit at 1 of 2 points: " in found


def test_bits_that_tc_would_read_as_bytes_are_named() -> None:
    text = PLAN + "  - [switch:receiver, rate, [1Gbps, 100mbit]]\n"
    assert remarks(load_plan(text.encode())) == [
        "<plan>:5:30: switch:receiver.rate: 1Gbps is 1gbit, in bits (tc would read bytes): write 1gbit"
    ]


def test_a_buffer_that_holds_no_full_sized_packet_is_named() -> None:
    text = PLAN + "  - [switch:receiver, rate, 100mbit]\n  - [switch:receiver, buffer, [1513B, 1514B, none]]\n"
    (found,) = remarks(load_plan(text.encode()))
    assert found.startswith("<plan>:6:5: switch:receiver.buffer: a buffer of 1513 bytes holds no packet of 1514, ")
    larger = text.replace("1513B, ", "") + "  - [all, mtu, 1500]\n"
    assert remarks(load_plan(larger.encode())) == []
    assert len(remarks(load_plan(larger.replace("1500", "1501").encode()))) == 1


def test_a_seed_that_has_nothing_to_choose_from_is_named() -> None:
    text = PLAN + "  - [switch:receiver, rate, 100mbit]\n  - [switch, ecmp_seed, [0, 1]]\n"
    (found,) = remarks(load_plan(text.encode()))
    assert found.startswith("<plan>:6:")
    assert "switch.ecmp_seed: topology pair has one way between any two hosts" in found
    several = text.replace("topology: pair", "topology: leaf_spine").replace("sender -> receiver", "h1 -> h4")
    several = several.replace("switch:receiver, rate", "leaf1, rate").replace("[switch,", "[switches,")
    assert remarks(load_plan(several.encode())) == []


def test_in_the_time_of_the_machine_there_is_always_a_limit() -> None:
    assert said(testbed="netns") == []
