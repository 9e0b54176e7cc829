# SPDX-License-Identifier: Apache-2.0
"""What is computed in parts, so that a large point takes less memory, is what is computed at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.metrics.core import matching
from testctl.metrics.core import view as views
from testctl.metrics.core.matching import wire
from testctl.metrics.core.rtts import round_trips
from testctl.metrics.core.view import rows_of, view
from testctl.records import Records, load_raw

FIXTURES = Path(__file__).parent / "fixtures"


def fresh(name: str) -> Records:
    return load_raw(FIXTURES / name)


@pytest.mark.parametrize("name", ["loss", "ack_owed"])
def test_departures_are_matched_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = wire(view(fresh(name), "bulk"))
    monkeypatch.setattr(matching, "_AT_ONCE", 7)
    flow = view(fresh(name), "bulk")
    parts = wire(flow)
    assert len(whole.row) > 100
    for field in ("row", "start", "end", "arrival", "once"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))
    for got, want in zip(round_trips(flow), round_trips(view(fresh(name), "bulk")), strict=True):
        np.testing.assert_array_equal(got, want)


@given(st.lists(st.integers(0, 40), min_size=1))
def test_rows_of_each_value_are_the_same_by_sorting(values: list[int]) -> None:
    key = np.array(values, np.uint16)
    few = {value: rows.tolist() for value, rows in views._rows_by(key)}
    many = {value: rows.tolist() for value, rows in views._rows_by(key.astype(np.int64))}
    assert few == many == {value: np.flatnonzero(key == value).tolist() for value in set(values)}


def test_columns_of_a_point_in_memory_are_kept() -> None:
    records = fresh("loss")
    rows = rows_of(records, "bulk", "sender", 0, out=True)
    before = rows["time_ns"]
    rows.release()
    records.release()
    assert rows["time_ns"] is before
    assert ("codes", "flow") in records.memo
