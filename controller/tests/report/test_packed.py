# SPDX-License-Identifier: Apache-2.0
"""What report.html has embedded is small, and it is what the records say, as precisely as it can be seen."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.curves import Window, curves, figure, lanes, lines_of
from testctl.records import Records
from testctl.report import embedded as embedding
from testctl.report.embedded import COLUMNS, embedded
from testctl.report.packed import column, drawn, packed
from testctl.report.page import point_data, render_report
from testctl.results import Run

from controller.tests.report.reading import element, inflated, lines, numbers, point_of

MEAN_BYTES, MOST_BYTES = 30_000, 40_000
"""Of a point of this run, the page's own parts included, and of the largest; 270,000 where nothing is packed."""


@pytest.fixture(scope="module")
def html(run: Run) -> str:
    return render_report(run)


@pytest.fixture(scope="module")
def records(run: Run) -> Records:
    found = run.points[0].records()
    assert found is not None
    return found


@given(st.lists(st.integers(-(2**52), 2**52)))
def test_a_column_is_exact(values: list[int]) -> None:
    assert numbers(column(values)) == values


def test_what_all_numbers_have_in_common_is_written_once() -> None:
    assert column([3000, 6000, 4500]) == [1500, 2, 2, -1]
    assert column([0, 0]) == [1, 0, 0]
    assert column([]) == [1]


def test_packed_text_can_not_end_its_element_and_is_the_same_each_time() -> None:
    data = {"a": "</script><!-- & \u2028", "half a character": "\ud800"}
    text = packed(data)
    assert not set(text) & set("<>&\"'")
    assert json.loads(inflated(text)) == data | {"half a character": "?"}
    assert packed(data) == text


def test_a_point_takes_few_bytes(run: Run, html: str) -> None:
    assert max(len(element(html, f"d-{one.id}")) for one in run.points) < MOST_BYTES
    plotly = len(element(html, "plotly"))
    assert len(html) - plotly < MEAN_BYTES * len(run.points)
    assert plotly < 2_000_000


def test_what_points_repeat_of_each_other_is_there_once(run: Run) -> None:
    """The figures of points with the same packets, and the names of metrics and settings."""
    packets = {point.id: "packed" if point.has_records else None for point in run.points}
    recorded = [point.id for point in run.points if point.has_records]
    html = render_report(run, packets)
    assert len(recorded) > 2
    assert [re.findall(rf' id="d-{one}"([^>]*)>([^<]*)<', html) for one in recorded] == [
        [("", "packed")], *[[(f' data-same="{recorded[0]}"', "")]] * (len(recorded) - 1)
    ]  # fmt: skip
    groups = re.findall(r' id="m-(\d+)">', html)
    details = [json.loads(inflated(element(html, f"m-{group}"))) for group in groups]
    assert [one for group in details for one in group] == [point.id for point in run.points]
    of = dict(re.findall(r' data-point="([^"]+)" data-group="(\d+)"', html))
    assert {one: of[one] for one in of} == {one: groups[n] for n, group in enumerate(details) for one in group}


def test_the_page_of_a_run_is_the_same_each_time(run: Run, html: str) -> None:
    assert render_report(run) == html


@pytest.mark.parametrize("name", ["seq", "cwnd", "latency", "rtt"])
def test_figures_are_what_the_curves_give(run: Run, html: str, records: Records, name: str) -> None:
    page = point_of(html, run.points[0].id)
    end_ns, spec, lane = page["duration_ns"], curves()[name].spec, lanes(records)[0]
    whole = Window(0, end_ns, COLUMNS)
    (shown,) = (one for one in page["figures"][name] if (one["from"], one["to"]) == (0, end_ns))
    wanted = figure(records, name, lane, whole)
    assert shown["data"]["bucket_ns"] == wanted["bucket_ns"]
    off_ns = wanted["bucket_ns"] / 8 if wanted["bucket_ns"] else end_ns / 2**20
    for got, want in zip(lines(shown["data"]), wanted["lines"], strict=True):
        assert (got["name"], got["rows"]) == (want["name"], want["rows"])
        np.testing.assert_allclose(got["t"], want["t"], rtol=0, atol=off_ns)
        assert got["t"] == sorted(got["t"])
        if spec.kind == "time":
            np.testing.assert_allclose(got["y"], want["y"], rtol=5.1e-4)
            assert {a for a in got["y"] if a != float(f"{a:.4g}")} == set()
        else:
            assert got["y"] == want["y"]


def test_a_whole_figure_has_as_many_columns_as_a_screen(html: str, run: Run) -> None:
    point = run.points[3]
    page, records = point_of(html, point.id), point.records()
    assert records is not None
    (latency,) = (one["data"] for one in page["figures"]["latency"])
    (line,) = lines(latency)
    full = lines_of(records, "latency", None)[0].time_ns * COLUMNS // page["duration_ns"]
    assert latency["bucket_ns"] == page["duration_ns"] // COLUMNS
    assert {t * COLUMNS // page["duration_ns"] for t in line["t"]} >= set(full.tolist())


def test_windows_with_every_packet_are_exact(run: Run, html: str, records: Records) -> None:
    page = point_of(html, run.points[0].id)
    windows = [one for one in page["figures"]["seq"] if one["to"] - one["from"] < page["duration_ns"]]
    assert windows
    for one in windows:
        wanted = figure(records, "seq", lanes(records)[0], Window(one["from"], one["to"], 150, alone=True))
        assert one["data"]["bucket_ns"] == wanted["bucket_ns"]
        if not wanted["bucket_ns"]:
            assert lines(one["data"]) == wanted["lines"]
    assert sum(not one["data"]["bucket_ns"] for one in windows) >= 4


@pytest.mark.parametrize(
    ("end_ns", "wanted"),
    [
        (10**10, [10**8, 10**7]),
        (10**9, [10**8, 10**7, 10**6]),
        (700_000_000, [10**8, 10**7, 10**6, 10**5]),
        (5_000_000, [10**6, 10**5]),
        (1000, [10**5]),
    ],
)
def test_bins_end_where_a_thousand_are_there(end_ns: int, wanted: list[int]) -> None:
    assert embedding._bins(end_ns) == wanted


def test_times_of_a_thinned_figure_keep_a_quarter_of_a_column() -> None:
    line: dict[str, Any] = {"name": "x", "t": [0, 1249, 1251, 999_999], "y": [12_344, 123_456, -123_456, 7], "rows": 4}
    (got,) = lines(drawn({"lines": [line], "bucket_ns": 10_000}, "time", 10**7))
    assert got["t"] == [0, 0, 2500, 1_000_000]
    assert got["y"] == [12_340, 123_500, -123_500, 7]
    (got,) = lines(drawn({"lines": [line], "bucket_ns": 10_000}, "size", 10**7))
    assert got["y"] == line["y"]


def test_a_worker_packs_as_the_page_does(run: Run, html: str) -> None:
    assert point_data(run.points[0]) == element(html, f"d-{run.points[0].id}")
    assert point_data(run.points[-1]) is None
    assert embedded(run.points[-1]) is None
