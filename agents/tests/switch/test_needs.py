# SPDX-License-Identifier: Apache-2.0
"""What a point's settings need of the testbed program, and what a program without the rest refuses."""

from __future__ import annotations

import pytest
from testctl_agent.spec.types import Value
from testctl_agent.switch import testbed_object
from testctl_agent.switch.layout import MOST_COPIES, NEEDS_LINKS, NEEDS_PARKS, NEEDS_TABLE
from testctl_agent.switch.needs import Needs, Settings, absent, needs

PORTS = {"a": 1, "b": 2}
FORWARDING = {"02:00:00:00:00:01": "a", "02:00:00:00:00:02": "b"}
FLOWS = "bulk/0 tcp 10.0.0.1:4000 10.0.0.2:5000"
MOST = 16


def of(settings: Settings) -> Needs:
    found = needs(PORTS, FORWARDING, MOST, settings)
    assert found is not None
    return found


def test_nothing_is_set() -> None:
    assert of({}) == Needs(frozenset({"forward"}), links=False, copies=2)


@pytest.mark.parametrize(
    ("fate", "tables"),
    [
        ("drop data 3 of bulk", {"fate"}),
        ("lose 1e-3 of bulk seed 1", {"loss"}),
        ("drop data every 10 of bulk", {"every"}),
        ("swap data 3 of bulk", {"fate", "swap"}),
    ],
)
def test_fates_need_their_tables(fate: str, tables: set[str]) -> None:
    found = of({("", "flows"): FLOWS, ("", "fate"): fate})
    assert found.tables == {"forward", "connection4", *tables}


def test_a_threshold_and_ipv6() -> None:
    flows = "bulk/0 tcp [fd00::1]:4000 [fd00::2]:5000"
    found = of({("", "flows"): flows, ("a", "ecn_threshold"): 30_000, ("b", "ecn_threshold"): "none"})
    assert found.tables == {"forward", "connection6", "ecn"}


@pytest.mark.parametrize(
    ("what", "value", "changes"),
    [
        ("rate", 10**9, False),
        ("rate", "none", False),
        ("rate", "1gbit; 1s 100mbit", True),
        ("delay", "1ms; 1s 5ms", True),
        ("down", "1s-2s", True),
        ("largest", "1400", True),
    ],
)
def test_links(what: str, value: Value, changes: bool) -> None:
    assert of({("b", what): value}).links == changes


@pytest.mark.parametrize("settings", [{("", "fate"): "drop data 3 of nobody"}, {("", "flows"): "?"}])
def test_what_will_be_refused_needs_all(settings: Settings) -> None:
    """The error is that of setting it."""
    assert needs(PORTS, FORWARDING, MOST, settings) is None


def test_constants() -> None:
    layout = testbed_object.layout()
    constants = of({("", "flows"): FLOWS, ("", "fate"): "swap data 3 of bulk"}).constants(layout)
    assert len(constants) == layout.needed_bytes
    assert (constants[NEEDS_LINKS], constants[NEEDS_PARKS], constants[MOST_COPIES]) == (0, 1, 2)
    there = {one.name.rpartition(".")[2] for one in layout.tables if constants[NEEDS_TABLE + one.index]}
    assert there >= {"forward", "connection4", "fate", "swap"}
    assert {name.rpartition(".")[2] for name in absent(layout, constants)} >= {"loss", "every", "ecn", "drawn"}
