# SPDX-License-Identifier: Apache-2.0
"""Rows of the packets table by their groups, and columns at rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from testctl.records.rows import grouped, take
from testctl.records.schema import numbers_of, others

MANY = 5000


def test_columns_at_rows_are_numpy_s() -> None:
    draw = np.random.default_rng(2)
    for kind in (np.int8, np.uint8, np.bool_, np.int16, np.int32, np.int64):
        column = draw.integers(-(2**62), 2**62, 2 * MANY).astype(kind)
        for row_kind in (np.int32, np.int64):
            for count in (0, 10, MANY):
                index = np.sort(draw.integers(0, len(column), count)).astype(row_kind)
                found = take(column, index)
                assert found.dtype == column.dtype
                assert (found == column[index]).all()
                assert (take(column[::2], index // 2) == column[::2][index // 2]).all()


@pytest.mark.parametrize("row", [-1, MANY])
def test_a_row_that_a_column_has_not_is_refused(row: int) -> None:
    with pytest.raises(IndexError, match=f"want rows below {MANY}; got"):
        take(np.zeros(MANY, np.int64), np.append(np.arange(MANY), row))


@pytest.mark.parametrize(("flows", "wheres"), [(1, 1), (1, 3), (3, 4), (40, 3), (2000, 40)])
def test_rows_by_their_group(flows: int, wheres: int) -> None:
    draw = np.random.default_rng(flows)
    flow, where, direction, out = (draw.integers(0, most, MANY) for most in (flows, wheres, 2, 2))
    columns = (flow.astype(np.int16), where.astype(np.int16), direction.astype(np.int8), out > 0)
    key = ((flow * wheres + where) * 2 + direction) * 2 + out
    found = list(grouped(*columns, flows, wheres))
    assert [group for group, _ in found] == np.unique(key).tolist()
    for group, rows in found:
        np.testing.assert_array_equal(rows, np.flatnonzero(key == group))


@pytest.mark.parametrize("seed", range(10))
def test_numbers_other_than_the_usual_one(seed: int) -> None:
    """In pieces, some of which are the same memory, whole or in part; the rows may be none."""
    draw = np.random.default_rng(seed)
    usual = pa.array(np.full(50, -1))
    few = [pa.array(np.where(draw.random(50) < 0.1, draw.integers(0, 9, 50), -1)) for _ in range(3)]
    pieces = [few[int(n)] if n < 3 else usual for n in draw.integers(0, 6, 20)]
    pieces += [few[0].slice(10, 20), few[0].slice(30), usual.slice(0, 7)]
    column = pa.chunked_array(pieces, pa.int64())
    index = np.flatnonzero(draw.random(len(column)) < draw.choice([0, 0.3, 1])).astype(np.int32)
    whole = column.to_numpy()[index]
    places, values = others(column, index, -1)
    assert places.tolist() == np.flatnonzero(whole != -1).tolist()
    assert values.tolist() == whole[whole != -1].tolist()


def test_booleans_of_a_column_and_of_a_part_of_one() -> None:
    values = np.random.default_rng(3).random(1000) < 0.5
    table = pa.table({"out": values})
    for begin, end in ((0, 1000), (0, 0), (7, 7), (3, 999), (8, 16), (13, 14), (1000, 1000)):
        found = numbers_of(table.slice(begin, end - begin), "out")
        assert found.dtype == np.bool_
        assert found.tolist() == values[begin:end].tolist()
    pieces = pa.table({"out": pa.chunked_array([values[:5], values[5:]])})
    assert numbers_of(pieces, "out").tolist() == values.tolist()
    assert numbers_of(pa.table({"out": [True, None]}), "out").tolist() == [True, None]
