# SPDX-License-Identifier: Apache-2.0
"""What report.html has packed is small, and it is what serve answers, as precisely as it can be seen."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.curves import Window, lanes
from testctl.records import Records
from testctl.report.embedded import BINS_NS, COLUMNS, EACH_SIDE, embedded
from testctl.report.packed import column, packed, rounded
from testctl.report.page import point_data, render_report
from testctl.report.point_page import chart_of
from testctl.report.stalls import read_stalls
from testctl.results import Run

from controller.tests.report.reading import element, inflated, numbers, point_of, unpacked

MEAN_BYTES, MOST_BYTES = 30_000, 45_000
"""Of a point of this run, the page's own parts included, and of the largest."""


@pytest.fixture(scope="module")
def records(run: Run) -> Records:
    found = run.points[0].records()
    assert found is not None
    return found


@given(st.lists(st.integers(-(2**52), 2**52)))
def test_a_column_is_exact(values: list[int]) -> None:
    assert numbers(column(values)) == values


@given(st.lists(st.one_of(st.none(), st.integers(-(2**52), 2**52), st.text(), st.booleans())))
def test_lists_come_back_as_they_were(values: list[int | str | None]) -> None:
    clean = [value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in values]
    got = unpacked(packed({"a": clean}))["a"]
    assert [value for value in got if not isinstance(value, str)] == [v for v in clean if not isinstance(v, str)]
    assert [type(value) for value in got] == [type(value) for value in clean]


def test_what_all_numbers_have_in_common_is_written_once() -> None:
    assert column([3000, 6000, 4500]) == [1500, 2, 2, -1]
    assert column([0, 0]) == [1, 0, 0]
    assert column([]) == [1]
    assert json.loads(inflated(packed([10, 20, None, 30, 40]))) == {"~": [10, 1, 1, 0, 1, 1], "!": [2]}


def test_packed_text_can_not_end_its_element_and_is_the_same_each_time() -> None:
    data = {"a": "</script><!-- & \u2028", "half a character": "\ud800", "not a number": float("nan")}
    text = packed(data)
    assert not set(text) & set("<>&\"'")
    assert unpacked(text) == data | {"half a character": "?", "not a number": None}
    assert packed(data) == text


def test_a_point_takes_few_bytes(run: Run, html: str) -> None:
    assert max(len(element(html, f"d-{one.id}")) for one in run.points) < MOST_BYTES
    own = len(render_report(run, {}))
    assert own < 600_000
    assert len(html) - own < MEAN_BYTES * len(run.points)


def test_what_points_repeat_of_each_other_is_there_once(run: Run) -> None:
    packets = {point.id: "packed" if point.has_records else None for point in run.points}
    recorded = [point.id for point in run.points if point.has_records]
    html = render_report(run, packets)
    assert len(recorded) > 2
    assert [re.findall(rf' id="d-{one}"([^>]*)>([^<]*)<', html) for one in recorded] == [
        [("", "packed")], *[[(f' data-same="{recorded[0]}"', "")]] * (len(recorded) - 1)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["throughput", "seq", "cwnd", "latency", "rtt"])
def test_figures_are_what_serve_draws(run: Run, html: str, records: Records, name: str) -> None:
    data = point_of(html, run.points[0].id)
    end_ns, lane = data["page"]["duration_ns"], lanes(records)[0]
    window = Window(0, end_ns, COLUMNS)
    whole = [one for one in data["figures"][name] if (one["from"], one["to"]) == (0, end_ns)]
    widths = [ns for ns in BINS_NS if 10 * ns <= end_ns <= COLUMNS * ns] if name == "throughput" else []
    assert [one["bin"] for one in whole] == [0, *widths]
    stalls = read_stalls(run.points[0].stalls(), records.packets)
    shown = whole[-1]
    wanted = json.loads(json.dumps(chart_of(records, name, [lane], window, stalls, {}, shown["bin"]).to_json()))
    assert {**shown["answer"], "data": None} == {**wanted, "data": None}
    assert shown["answer"]["data"].keys() == wanted["data"].keys()
    for key, columns in wanted["data"].items():
        got = shown["answer"]["data"][key]
        assert got.keys() == columns.keys()
        np.testing.assert_allclose(got["t"], columns["t"], rtol=0, atol=window.bucket / 8 + 1)
        assert got["t"] == sorted(got["t"])
        for end in {"y", "y2"} & columns.keys():
            known = [value is not None for value in columns[end]]
            assert [value is not None for value in got[end]] == known
            np.testing.assert_allclose(
                [v for v in got[end] if v is not None], [v for v in columns[end] if v is not None], rtol=5.1e-4
            )


def test_every_packet_is_there_around_the_longest_stalls(run: Run, html: str, records: Records) -> None:
    data, lane = point_of(html, run.points[0].id), lanes(records)[0]
    windows = [one for one in data["figures"]["seq"] if one["to"] - one["from"] < data["page"]["duration_ns"]]
    stalls = read_stalls(run.points[0].stalls(), records.packets)
    for stall in stalls:
        assert sum(one["from"] <= stall.start_ns < one["to"] for one in windows) > 0
    for one in windows:
        window = Window(one["from"], one["to"], 150, alone=True)
        wanted = chart_of(records, "seq", [lane], window, stalls, {}).to_json()
        assert one["answer"] == json.loads(json.dumps(wanted))
        assert len(one["answer"]["data"]["l0"]) > 0
    assert any(len(one["answer"]["data"][line["set"]]["t"]) > EACH_SIDE
               for one in windows for line in one["answer"]["lines"])  # fmt: skip


def test_times_keep_a_quarter_of_a_column() -> None:
    window = Window(0, 30_000, 3)
    data = {"l0": {"t": [0, 1249, 1251, 29_999], "y": [12_344, 123_456, None, 7], "tip": ["a", "b", "c", "d"]}}
    assert rounded(data, "time", window)["l0"] == {
        "t": [0, 0, 2500, 30_000], "y": [12_340, 123_500, None, 7], "tip": ["a", "b", "c", "d"],
    }  # fmt: skip
    assert rounded(data, "size", window)["l0"]["y"] == data["l0"]["y"]
    assert rounded({"l0": {"t": [0, 1249]}}, "size", window)["l0"]["t"] == [0, 1249]


def test_a_worker_packs_as_the_page_does(run: Run, html: str) -> None:
    assert point_data(run.points[0]) == element(html, f"d-{run.points[0].id}")
    assert point_data(run.points[-1]) is None
    assert embedded(run.points[-1]) is None
