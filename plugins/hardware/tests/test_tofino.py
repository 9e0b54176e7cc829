# SPDX-License-Identifier: Apache-2.0
"""Tofino's units, and the error without Intel's SDE.  No Tofino switch is available."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from testctl_agent.spec.errors import ApplyError, DriverError, TestbedError
from testctl_agent.switch.drivers.driver import Exact, Key, Lpm, Range, Ternary
from testctl_hardware import tofino
from testctl_hardware import tofino_units as units
from testctl_hardware.bfrt import client_module, key_words


@pytest.mark.parametrize(("limit", "cells"), [(1, 1), (79, 1), (80, 1), (159, 1), (160, 2), (100_000, 1250)])
def test_a_buffer_is_never_more_than_was_asked_for_but_at_least_a_cell(limit: int, cells: int) -> None:
    assert units.cells(limit) == cells
    assert units.cell_bytes(cells) <= max(limit, units.CELL_BYTES)


@pytest.mark.parametrize("limit", [0, -1, units.MAX_CELLS * 80 + 80])
def test_a_buffer_that_no_queue_has_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=rf"want 1 to 20971440 bytes; got {limit}"):
        units.cells(limit)


@pytest.mark.parametrize(("depth", "cells"), [(0, 0), (1, 1), (80, 1), (81, 2), (30_000, 375)])
def test_a_packet_is_never_marked_earlier_than_asked_for(depth: int, cells: int) -> None:
    assert units.threshold_cells(depth) == cells


@pytest.mark.parametrize(("rate", "kbps"), [(1, 1), (1999, 1), (2000, 2), (10**9, 10**6), (10**11, 10**8)])
def test_a_rate_is_never_faster_than_asked_for(rate: int, kbps: int) -> None:
    assert units.kbps(rate) == kbps
    assert units.bps(kbps) <= max(rate, 1000)


@pytest.mark.parametrize("rate", [0, units.MAX_KBPS * 1000 + 1000])
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


SHAPED, SHAPING, BUFFER, POOL = (
    f"tf1.tm.{name}" for name in ("port.sched_cfg", "port.sched_shaping", "queue.buffer", "pool.cfg")
)


class FixedTables:
    """A chip's traffic manager as far as the back end uses it; the program's tables take everything."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {
            "tf1.tm.port.cfg": {"pg_id": 1, "egress_qid_queues": [8]},
            SHAPED: {"max_rate_enable": True},
            SHAPING: {"unit": "BPS", "provisioning": "UPPER", "max_rate": 7_000_000, "max_burst_size": 9000},
            BUFFER: {"guaranteed_cells": 20, "hysteresis_cells": 4, "pool_id": "EG_APP_POOL_1", "pool_max_cells": 100,
                     "dynamic_baf": "80_PERCENT"},
            POOL: {"size_cells": 500},
        }  # fmt: skip
        self.changed: list[str] = []
        self.closed = False

    def fixed(self, name: str, keys: Mapping[str, object], pipe: int = 0) -> dict[str, Any]:
        return dict(self.rows[name])

    def modify(
        self, name: str, keys: Mapping[str, object], data: Mapping[str, object], action: str = "", pipe: int = 0
    ) -> None:
        self.changed.append(name)
        self.rows[name] |= data

    def close(self) -> None:
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def test_a_port_gets_back_what_it_had_the_last_change_first() -> None:
    driver = FixedTables()
    before = {name: dict(row) for name, row in driver.rows.items()}
    switch = tofino.TofinoBackend(driver, {"1/0": 132}, {})  # type: ignore[arg-type]
    switch.apply("1/0", "rate", 10**9)
    switch.apply("1/0", "buffer", 100_000)
    assert (switch.read("1/0", "rate"), switch.read("1/0", "buffer")) == (10**9, 100_000)
    assert driver.rows[POOL] == {"size_cells": 1250}
    driver.changed.clear()
    switch.close()
    assert driver.rows == before
    assert driver.closed
    assert driver.changed.index(BUFFER) < driver.changed.index(POOL)


def test_what_can_not_be_given_back_keeps_nothing_else_from_it() -> None:
    driver = FixedTables()
    before = {name: dict(row) for name, row in driver.rows.items()}
    switch = tofino.TofinoBackend(driver, {"1/0": 132}, {})  # type: ignore[arg-type]
    switch.apply("1/0", "rate", 10**9)
    switch.apply("1/0", "buffer", 100_000)
    modify = driver.modify

    def refusing(name: str, *rest: Any, **where: Any) -> None:
        if name == BUFFER:
            raise DriverError("no")
        modify(name, *rest, **where)

    driver.modify = refusing  # type: ignore[method-assign]
    with pytest.raises(DriverError, match="no"):
        switch.close()
    assert driver.closed
    assert {name for name in before if driver.rows[name] != before[name]} == {BUFFER}


def test_a_buffer_that_could_not_be_given_back_is_tried_again() -> None:
    driver = FixedTables()
    before = {name: dict(row) for name, row in driver.rows.items()}
    switch = tofino.TofinoBackend(driver, {"1/0": 132}, {})  # type: ignore[arg-type]
    switch.apply("1/0", "buffer", 100_000)
    modify = driver.modify

    def refusing(name: str, *rest: Any, **where: Any) -> None:
        raise DriverError("busy")

    driver.modify = refusing  # type: ignore[method-assign]
    with pytest.raises(ApplyError, match="buffer: want none; busy"):
        switch.apply("1/0", "buffer", "none")
    driver.modify = modify  # type: ignore[method-assign]
    switch.close()
    assert driver.rows == before


@pytest.mark.parametrize("wrong", ["fixed", "multicast"])
def test_a_switch_that_can_not_be_used_keeps_no_connection(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """bf_switchd would refuse the next one: a client's id is taken as long as its stream is open."""
    driver = FixedTables()

    def refusing(*_: Any) -> None:
        raise DriverError("no")

    monkeypatch.setattr(driver, wrong, refusing, raising=False)
    monkeypatch.setattr(tofino, "BfrtDriver", lambda *_: driver)
    monkeypatch.setenv(tofino.VARIABLE, "127.0.0.1:50052")
    with pytest.raises(TestbedError, match=r"no$"):
        tofino.open_backend(("1/0", "2/0") if wrong == "fixed" else ("132", "140"), {})
    assert driver.closed
