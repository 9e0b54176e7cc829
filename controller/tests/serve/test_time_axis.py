# SPDX-License-Identifier: Apache-2.0
"""A point has one time axis, in the report and in the served page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testctl.curves import shown_ns
from testctl.report.embedded import embedded
from testctl.results import load_point
from testctl.serve.source import read_source

RUN = "20260101T120000Z-two"
S = 10**9


@pytest.mark.parametrize(
    ("flows", "estimate", "last", "want"),
    [
        ([{"duration": 2 * S}], 2 * S, 2 * S + 1000, 2 * S),
        ([{"duration": 2 * S}], 2 * S, 3 * S, 3 * S + 1),
        ([{}], 10 * S, 9 * S, 10 * S),
        ([{"bytes": 10_000_000}], 1_800_000_000, 100_000_000, 100_000_001),
        ([{"pattern": "schedule 1kB at 1s"}], 30 * S, 7 * S, 7 * S + 1),
        ([{"bytes": 10**9}, {"duration": 2 * S, "start": S}], 81 * S, 3 * S, 3 * S),
        ([{"bytes": 10**9}, {"duration": 2 * S}], 81 * S, 9 * S, 9 * S + 1),
        ([], 0, 5, 6),
    ],
)
def test_the_axis_ends_where_the_flows_were_to_end_or_did(
    flows: list[dict[str, Any]], estimate: int, last: int, want: int
) -> None:
    assert shown_ns({"flows": [{"options": one} for one in flows], "duration_ns": estimate}, last) == want


@pytest.mark.parametrize("options", [{}, {"bytes": 100_000}, {"duration": S}])
def test_report_and_served_page_show_the_same_time(results: Path, options: dict[str, int]) -> None:
    path = results / RUN / "points" / "loss"
    asked = json.loads((path / "point.json").read_text(encoding="utf-8"))
    asked["flows"][0]["options"] = options
    (path / "point.json").write_text(json.dumps(asked | {"duration_ns": 30 * S}), encoding="utf-8")
    data = embedded(load_point(path))
    assert data is not None
    assert data["page"]["duration_ns"] == read_source(path).duration_ns
