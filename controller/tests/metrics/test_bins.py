# SPDX-License-Identifier: Apache-2.0
"""Bins: at every width they sum to the bytes on the wire, exactly."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.core.point import TimedFlow
from testctl.curves import series
from testctl.metrics import WIDTHS
from testctl.metrics.core.bins import dense_bins, whole_bins
from testctl.metrics.core.native import walks
from testctl.metrics.core.view import view
from testctl.records import load_raw
from testctl.records.schema import Ints

from controller.tests.support.synthetic import Conversation, bulk, write_point

PACKETS = st.lists(st.tuples(st.integers(-(10**6), 10**8), st.integers(0, 66_000)), max_size=200)


def columns(packets: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    """Times, ascending, and sizes."""
    rows = np.array(sorted(packets), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@given(PACKETS, st.sampled_from(sorted(WIDTHS.values())))
@settings(max_examples=60, deadline=None)
def test_bins_sum_to_the_bytes_at_every_width(packets: list[tuple[int, int]], bin_ns: int) -> None:
    edges, sums = dense_bins(*columns(packets), bin_ns)
    assert sums.dtype == np.int64
    assert int(sums.sum()) == sum(size for _, size in packets)
    assert len(edges) == len(sums) + 1
    if packets:
        assert edges[0] <= min(packets)[0]
        assert edges[-1] > max(packets)[0]
        assert set((edges % bin_ns).tolist()) == {0}
    for start, end, total in list(zip(edges, edges[1:], sums, strict=False))[:50]:
        assert total == sum(size for at, size in packets if start <= at < end)


@given(
    st.lists(st.integers(1, 1448), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(WIDTHS.values())),
)
@settings(max_examples=30, deadline=None)
def test_bins_of_a_capture_sum_to_the_bytes_on_the_wire(sizes: list[int], isn: int, bin_ns: int) -> None:
    talk = Conversation(isn=isn, delay_us=7.5)
    at = 100.0
    for n, size in enumerate(sizes):
        talk.data(at, sum(sizes[:n]), size)
        at += size / 3
    with tempfile.TemporaryDirectory() as directory:
        records = load_raw(write_point(Path(directory), talk.captures()))
    flow = view(records, "bulk")
    for rows in (flow.out, flow.into):
        _, sums = dense_bins(rows["time_ns"], rows["wire_bytes"], bin_ns)
        assert int(sums.sum()) == 74 + sum(sizes) + 66 * len(sizes)


def test_ten_seconds_in_microseconds() -> None:
    rng = np.random.default_rng(7)
    packets = list(zip(rng.integers(0, 10**10, 5000).tolist(), rng.integers(60, 1515, 5000).tolist(), strict=True))
    _, sums = dense_bins(*columns(packets), 1000, 0, 10**10)
    assert len(sums) == 10**7
    assert int(sums.sum()) == sum(size for _, size in packets)


def test_departures_are_binned_where_nothing_arrives(tmp_path: Path) -> None:
    write_point(tmp_path, {"sender": bulk(20)["sender"]})
    (tmp_path / "raw" / "receiver").mkdir(exist_ok=True)
    records = load_raw(tmp_path)
    assert len(view(records, "bulk").into) == 0
    sums = series(records, "bulk", "throughput", 1000)["wire_bytes"].to_numpy()
    assert sums.sum() == 20 * 1514 + 74


def test_a_flow_without_packets_has_no_bins(tmp_path: Path) -> None:
    records = load_raw(write_point(tmp_path, bulk(20)))
    other = TimedFlow("other", "sender", "receiver")
    records.point = replace(records.point, flows=(*records.point.flows, other))
    assert series(records, "other", "throughput", 1000).num_rows == 0
    with pytest.raises(KeyError, match="series x: want one of throughput, fairness"):
        series(records, "bulk", "x", 0)


def test_limits_and_whole_bins() -> None:
    time_ns, amount = np.array([0, 5, 10, 19, 25]), np.array([1, 2, 4, 8, 16])
    assert dense_bins(time_ns, amount, 10, 5, 25)[1].tolist() == [6, 8]
    count, number, total = whole_bins(time_ns, amount, 0, 29, 10)
    assert (count, number.tolist(), total.tolist()) == (2, [0, 1], [3, 12])
    assert walks().bins(time_ns, amount, -100, 10)[0].tolist() == [10, 11, 12]
    with pytest.raises(ValueError, match="want a bin width above 0 ns; got 0"):
        dense_bins(time_ns, amount, 0)
