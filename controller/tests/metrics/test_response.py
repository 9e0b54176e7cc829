# SPDX-License-Identifier: Apache-2.0
"""A point of a response function, from made-up traffic."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from testctl.core.point import PointSpec
from testctl.metrics import analyse
from testctl.metrics.response import loss_rate, reno_window
from testctl.records import load_raw

from controller.tests.support.synthetic import bulk, write_point

WAY = {
    "hosts": {"sender": "10.0.0.1", "receiver": "10.0.0.2"},
    "switches": ["left", "right"],
    "links": [["sender", "left"], ["left", "right"], ["right", "receiver"]],
}


def values(folder: Path, settings: dict[str, Any], count: int = 10_000) -> dict[str, Any]:
    write_point(folder, bulk(count, rate_bps=1e8), settings=settings)
    file = folder / "point.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"topology": WAY}))
    return analyse(load_raw(folder)).metrics["bulk"]


def test_the_window_is_what_is_sent_in_a_round_trip(tmp_path: Path) -> None:
    """100 Mb/s of packets of 1514 bytes: 8256 a second, in 2 + 10 + 3 + 5 ms."""
    settings = {
        "left": {"delay": 10_000_000, "fate": "lose 1e-3 of bulk seed 7; drop data 5 of bulk"},
        "left:sender": {"delay": 2_000_000},
        "right": {"delay": 3_000_000, "fate": "lose 0.5 of other"},
        "right:left": {"delay": 5_000_000},
    }
    got = values(tmp_path, settings)
    assert got["window_segments"] == pytest.approx(8256 * 0.020, rel=0.01)
    assert got["random_loss_rate"] == pytest.approx(1e-3)
    assert got["window_over_reno"] == pytest.approx(got["window_segments"] / math.sqrt(1500))


def test_without_random_losses_or_a_round_trip_there_is_no_value(tmp_path: Path) -> None:
    got = values(tmp_path, {"left": {"rate": 10**9}})
    assert all(math.isnan(got[name]) for name in ("window_segments", "random_loss_rate", "window_over_reno"))


def test_losses_of_several_switches_add_up() -> None:
    lose = {"fate": "lose 0.1 of bulk"}
    point = PointSpec.from_json({"topology": WAY, "settings": {"left": lose, "right": lose}})
    assert loss_rate(point, "bulk") == pytest.approx(0.19)
    assert math.isnan(loss_rate(point, "other"))


def test_reno_of_mathis() -> None:
    """Standard TCP in RFC 3649, table 1: 12, 38, 120, 379 segments."""
    assert [round(reno_window(rate)) for rate in (1e-2, 1e-3, 1e-4, 1e-5)] == [12, 39, 122, 387]
