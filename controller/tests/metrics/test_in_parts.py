# SPDX-License-Identifier: Apache-2.0
"""What is computed in parts, so that a large point takes less memory, is what is computed at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.metrics.core.view import rows_of
from testctl.records import Records, load_raw

FIXTURES = Path(__file__).parent / "fixtures"


def fresh(name: str) -> Records:
    return load_raw(FIXTURES / name)


def test_columns_of_a_point_in_memory_are_kept() -> None:
    records = fresh("loss")
    rows = rows_of(records, "bulk", "sender", 0, out=True)
    before = rows["time_ns"]
    rows.release()
    records.release()
    assert rows["time_ns"] is before
    assert ("codes", "flow") in records.memo


@pytest.mark.parametrize("turns", [0, 1, 2, 7, 16, 17, 100])
def test_columns_of_rows_that_are_picked(turns: int) -> None:
    """Of a few stretches they are copied from those of all; either way they are the table's, and are taken once."""
    records = fresh("loss")
    rows = rows_of(records, "bulk", "sender", 0, out=True)
    assert rows is rows_of(records, "bulk", "sender", 0, out=True)
    draw = np.random.default_rng(turns)
    for first in (False, True):
        edges = np.sort(draw.choice(np.arange(1, len(rows)), turns, replace=False))
        mask = (np.searchsorted(edges, np.arange(len(rows)), side="right") % 2 == 1) != first
        picked = rows.where(mask)
        again = picked.where(picked["length"] > 0)
        for name in ("time_ns", "length", "retrans"):
            column = records.column(name)
            np.testing.assert_array_equal(picked[name], column[rows.index[mask]])
            np.testing.assert_array_equal(again[name], column[again.index])
            assert picked[name] is picked[name]
        assert (again["length"] > 0).all()
