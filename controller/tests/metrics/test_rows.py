# SPDX-License-Identifier: Apache-2.0
"""Rows of a flow's packets: whichever way their columns are taken, they are those of the packets table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from testctl.metrics.core.passages import data_passages
from testctl.metrics.core.view import Rows, forget_columns, rows_of, view
from testctl.records import Records, load_raw

FIXTURES = Path(__file__).parent / "fixtures"
COLUMNS = ("time_ns", "seq", "length", "conn", "flags", "retrans", "tsval", "out")


@pytest.fixture(scope="module")
def records() -> Records:
    return load_raw(FIXTURES / "loss")


def data(records: Records) -> Rows:
    seen = view(records, "bulk")
    return rows_of(records, "bulk", seen.sender, seen.direction, out=True)


def same(rows: Rows, index: np.ndarray) -> None:
    assert rows.index.tolist() == index.tolist()
    for name in COLUMNS:
        found, wanted = rows[name], records_column(rows, name)[index]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, name)


def records_column(rows: Rows, name: str) -> np.ndarray:
    return np.asarray(rows.records.packets.column(name).to_numpy())


@pytest.mark.parametrize("taken", [(), COLUMNS[:3], COLUMNS])
@pytest.mark.parametrize("kind", ["none", "all", "head and tail", "every third", "random"])
def test_rows_by_a_mask(records: Records, kind: str, taken: tuple[str, ...]) -> None:
    """From few stretches and from many, where the columns of the whole have been taken and where they have not."""
    whole = data(records)
    whole.forget()
    for name in taken:
        whole[name]
    place = np.arange(len(whole))
    mask = {
        "none": place < 0,
        "all": place >= 0,
        "head and tail": (place < 5) | (place > len(place) - 9),
        "every third": place % 3 == 0,
        "random": np.random.default_rng(3).random(len(place)) < 0.5,
    }[kind]
    some = whole.where(mask)
    same(some, whole.index[mask])
    inner = np.arange(len(some)) % 2 == 0
    same(some.where(inner), whole.index[mask][inner])


@pytest.mark.parametrize("taken", [False, True])
def test_a_column_at_some_rows(records: Records, taken: bool) -> None:
    rows = data(records)
    rows.forget()
    if taken:
        rows["tsval"]
    at = np.array([7, 3, 3, len(rows) - 1, 0])
    wanted = records_column(rows, "tsval")[rows.index[at]]
    assert rows.at("tsval", at).tolist() == wanted.tolist()
    assert ("tsval" in rows.memo) == taken
    assert rows.at("tsval", at[:0]).tolist() == []


def test_columns_of_a_point_in_memory_are_kept(records: Records) -> None:
    rows = data(records)
    assert rows is data(records)
    before = rows["time_ns"]
    rows.release()
    records.release()
    assert rows["time_ns"] is before
    assert ("codes", "flow") in records.memo


def test_the_largest_payload_of_merged_packets(records: Records) -> None:
    rows = data(records).with_payload
    each = -(-rows["length"] // rows["segs"])
    assert rows.largest == each.max() > 0
    assert rows.where(np.zeros(len(rows), np.bool_)).largest == 0


def test_what_is_forgotten_is_taken_again() -> None:
    found = load_raw(FIXTURES / "all_instruments")
    seen = view(found, found.flows[0])
    kept = [seen.out.with_payload, *(passage.rows for passage in data_passages(seen))]
    assert len(kept) > 1
    before = [(rows["time_ns"].copy(), rows.end.copy()) for rows in kept]
    forget_columns(found)
    assert not any(rows.memo or "end" in vars(rows) for rows in kept)
    for rows, (time_ns, end) in zip(kept, before, strict=True):
        np.testing.assert_array_equal(rows["time_ns"], time_ns)
        np.testing.assert_array_equal(rows.end, end)
