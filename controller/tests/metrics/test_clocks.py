# SPDX-License-Identifier: Apache-2.0
"""Hosts with different clocks: a known offset is subtracted, and a value below the error is NaN."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from testctl.metrics import Number, analyse
from testctl.metrics.core.latencies import certain_latencies
from testctl.metrics.core.queues import under_way
from testctl.metrics.core.view import view
from testctl.records import load_raw

from controller.tests.support.synthetic import bulk, write_point

LATENCIES = ("latency_mean_us", "latency_p99_us", "latency_p50_us")


def values(where: Path, ahead_ns: int, clocks: dict[str, Any] | None, arrive: slice = slice(None)) -> dict[str, Number]:
    """Metrics of a flow of 5 ms latency whose receiver's clock is ahead by so much; arrive: what its capture has."""
    captures = bulk(2000, rate_bps=1e9)
    captures["receiver"] = {name: column[arrive].copy() for name, column in captures["receiver"].items()}
    captures["receiver"]["time_ns"] += ahead_ns
    write_point(where, captures)
    if clocks is not None:
        path = where / "raw/outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"clocks": clocks}))
    return analyse(load_raw(where)).metrics["bulk"]


def clocks(offset_ns: int, error_ns: int) -> dict[str, Any]:
    """Both hosts against a third clock, half of the error each."""
    each = {"error_ns": error_ns // 2, "source": "packets"}
    return {"sender": {"offset_ns": 700, **each}, "receiver": {"offset_ns": 700 + offset_ns, **each}}


def test_one_clock_says_nothing_and_changes_nothing(tmp_path: Path) -> None:
    found = values(tmp_path / "a", 0, None)
    assert [found[name] for name in LATENCIES] == [5000.0] * 3
    assert math.isnan(float(found["clock_error_ns"]))
    assert math.isnan(float(found["clock_offset_ns"]))
    same = values(tmp_path / "b", 0, {})
    assert {name: repr(value) for name, value in same.items()} == {name: repr(value) for name, value in found.items()}


@pytest.mark.parametrize("ahead_ns", [3_000_000, -30_000_000])
def test_the_offset_is_taken_off(tmp_path: Path, ahead_ns: int) -> None:
    found = values(tmp_path, ahead_ns, clocks(ahead_ns, 20_000))
    assert [found[name] for name in LATENCIES] == [5000.0] * 3
    assert (found["clock_offset_ns"], found["clock_error_ns"]) == (ahead_ns, 20_000)
    assert found["packets_lost"] == 0


@pytest.mark.parametrize("arrive", [slice(-600), slice(-2400)])
def test_which_packets_were_under_way_at_the_end_is_seen_by_one_clock(tmp_path: Path, arrive: slice) -> None:
    one = values(tmp_path / "one", 0, None, arrive)
    for ahead_ns in (50_000_000, -50_000_000):
        two = values(tmp_path / str(ahead_ns), ahead_ns, clocks(ahead_ns, 20_000), arrive)
        assert (two["packets_lost"], two["loss_rate"]) == (one["packets_lost"], one["loss_rate"])


def test_arrivals_before_departures_are_matched_within_the_error(tmp_path: Path) -> None:
    found = values(tmp_path, -5_010_000, clocks(0, 20_000))
    assert found["packets_lost"] == 0
    assert math.isnan(float(found["latency_mean_us"]))  # -10 us, which may be wrong by 20 us


def test_a_latency_below_the_error_is_not_drawn(tmp_path: Path) -> None:
    for error_ns, drawn in ((20_000, 2000), (6_000_000, 0)):
        values(tmp_path / str(error_ns), 0, clocks(0, error_ns))
        left, latency_ns = certain_latencies(view(load_raw(tmp_path / str(error_ns)), "bulk"))
        assert (len(left), len(latency_ns)) == (drawn, drawn)


def test_what_is_under_way_is_seen_by_one_clock(tmp_path: Path) -> None:
    values(tmp_path / "one", 0, None)
    values(tmp_path / "two", 3_000_000, clocks(3_000_000, 20_000))
    one, two = (under_way(view(load_raw(tmp_path / name), "bulk")) for name in ("one", "two"))
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()


@pytest.mark.parametrize("known", [clocks(0, 5_000_002), {"sender": {"offset_ns": 0, "error_ns": 1, "source": "ptp"}}])
def test_what_the_error_exceeds_is_not_told(tmp_path: Path, known: dict[str, Any]) -> None:
    found = values(tmp_path, 0, known)
    assert all(math.isnan(float(found[name])) for name in LATENCIES)
    assert found["rtt_p50_us"] == pytest.approx(10_000, abs=20)
