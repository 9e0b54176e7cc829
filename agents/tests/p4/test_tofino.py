# SPDX-License-Identifier: Apache-2.0
"""Tofino's units, and what is said where Intel's SDE is not installed.  The switch itself is not at hand."""

from __future__ import annotations

import pytest
from testctl_agent.p4 import tofino_units as units
from testctl_agent.p4.bfrt import client_module, key_words
from testctl_agent.p4.driver import Exact, Key, Lpm, Range, Ternary
from testctl_agent.spec.errors import DriverError, TestbedError
from testctl_agent.switch import tofino


@pytest.mark.parametrize(("limit", "cells"), [(1, 1), (79, 1), (80, 1), (159, 1), (160, 2), (100_000, 1250)])
def test_a_buffer_is_never_more_than_was_asked_for_but_at_least_a_cell(limit: int, cells: int) -> None:
    assert units.cells(limit) == cells
    assert units.cell_bytes(cells) <= max(limit, units.CELL_BYTES)


@pytest.mark.parametrize("limit", [0, -1, units.MOST_CELLS * 80 + 80])
def test_a_buffer_that_no_queue_has_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=rf"want 1 to 20971440 bytes; got {limit}"):
        units.cells(limit)


@pytest.mark.parametrize(("depth", "cells"), [(0, 0), (1, 1), (80, 1), (81, 2), (30_000, 375)])
def test_a_packet_is_never_marked_earlier_than_asked_for(depth: int, cells: int) -> None:
    assert units.threshold_cells(depth) == cells


def test_a_packet_takes_whole_cells() -> None:
    assert units.packet_cells(64) == 1
    assert units.packet_cells(1514) == 19
    assert units.most_packets(16_000, 1514) == 10
    assert units.most_packets(16_000, 64) == 200


@pytest.mark.parametrize(("rate", "kbps"), [(1, 1), (1999, 1), (2000, 2), (10**9, 10**6), (10**11, 10**8)])
def test_a_rate_is_never_faster_than_asked_for(rate: int, kbps: int) -> None:
    assert units.kbps(rate) == kbps
    assert units.bps(kbps) <= max(rate, 1000)


@pytest.mark.parametrize("rate", [0, units.MOST_KBPS * 1000 + 1000])
def test_a_rate_that_no_port_has_is_refused(rate: int) -> None:
    with pytest.raises(ValueError, match="want 1 bit/s to 400000000 kbit/s"):
        units.kbps(rate)


def test_the_highest_priority_is_the_lowest_number() -> None:
    assert units.match_priority(3) < units.match_priority(2)
    with pytest.raises(ValueError, match="want a priority of 0 to 16777215; got -1"):
        units.match_priority(-1)


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [
        ("exact", Exact(5), {"value": 5}),
        ("ternary", Ternary(0xFF, 0x0F), {"value": 0x0F, "mask": 0x0F}),
        ("ternary", Exact(5), {"value": 5, "mask": 0xFF}),
        ("ternary", None, {"value": 0, "mask": 0}),
        ("lpm", Lpm(0xFF, 3), {"value": 0xE0, "prefix_len": 3}),
        ("lpm", None, {"value": 0, "prefix_len": 0}),
        ("range", Range(2, 7), {"low": 2, "high": 7}),
        ("range", None, {"low": 0, "high": 255}),
    ],
)
def test_a_key_as_the_client_takes_it(kind: str, key: Key | None, words: dict[str, int]) -> None:
    assert key_words(kind, 8, key) == words


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(DriverError, match=r"want a match that is exact; got Range\(low=1, high=2\)"):
        key_words("exact", 8, Range(1, 2))


def test_without_the_sde_it_is_said_what_is_missing() -> None:
    with pytest.raises(DriverError, match=r"want the module bfrt_grpc\.client of Intel's SDE; got none"):
        client_module()


def test_without_an_address_it_is_said_where_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tofino.VARIABLE, raising=False)
    with pytest.raises(TestbedError, match=r"want the address of bf_switchd in \$TESTCTL_BFRT; got none"):
        tofino.open_backend(("1/0",), {})
