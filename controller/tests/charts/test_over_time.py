# SPDX-License-Identifier: Apache-2.0
"""Figures over time: who has which colour, what is drawn of packets, and that files and pages get the same."""

from __future__ import annotations

import colorsys
import json
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from testctl.charts import Chart, drawing, save
from testctl.charts.chart import rows
from testctl.charts.over_time import Span, over_time
from testctl.charts.panel import DASHES
from testctl.charts.style import LANES, ON_DARK, VERDICT_LOOKS, VIOLATION
from testctl.curves import Window, figures, lanes, shown_ns
from testctl.records import Records, load_raw
from testctl.report.point_page import chart_of

FIXTURES = Path(__file__).parents[1] / "metrics" / "fixtures"


@pytest.fixture(scope="module")
def flows() -> Records:
    """Two flows, bulk and brief."""
    return load_raw(FIXTURES / "all_instruments")


def whole(records: Records) -> Window:
    return Window(0, shown_ns(records.point.to_json(), int(records.column("time_ns").max())), 600)


def legend(chart: Chart) -> dict[str, tuple[str, list[int]]]:
    return {label: (colour, dash) for label, colour, dash in chart.to_json()["legend"]}


def test_a_flow_has_its_colour_whatever_is_drawn_beside_it(flows: Records) -> None:
    """By its place in the plan, not by who sent most or which connection is chosen."""
    window = whole(flows)
    for name in set(figures(flows)) & {"throughput", "rtt", "latency", "cwnd"}:
        for chosen in (lanes(flows), lanes(flows)[::-1], lanes(flows)[1:]):
            for label, (colour, _) in legend(over_time(flows, name, chosen, window)).items():
                flow = label.partition("/")[0]
                if flow in flows.flows:
                    assert colour == LANES[list(flows.flows).index(flow)], (name, label)


def test_connections_of_a_flow_have_dashes_and_are_drawn_singly(flows: Records) -> None:
    chart = over_time(flows, "throughput", lanes(flows), whole(flows), singly=True)
    labels = legend(chart)
    several = len(lanes(flows)) > len(flows.flows)
    assert set(labels) == ({f"{flow}/{conn}" for flow, conn in lanes(flows)} if several else set(flows.flows))
    for label, (_, dash) in labels.items():
        assert dash == list(DASHES[int(label.rpartition("/")[2]) if several else 0])


def test_the_threshold_is_seen_where_it_lies_on_the_window(flows: Records) -> None:
    """It is drawn last, with dots wider than the window's line."""
    window, threshold = over_time(flows, "cwnd", lanes(flows)[:1], whole(flows)).to_json()["spec"]["layer"][-2:]
    assert threshold["encoding"]["strokeDash"] == {"datum": "slow-start threshold"}
    assert threshold["mark"]["strokeWidth"] >= 2 * window["mark"]["strokeWidth"]


def test_what_is_allowed_has_the_colour_of_its_flow(flows: Records) -> None:
    found = legend(over_time(flows, "cwnd", lanes(flows)[:1], whole(flows)))
    assert found["window"][0] == found["slow-start threshold"][0] == LANES[0]
    assert found["window"][1] != found["slow-start threshold"][1]


def test_no_flow_has_the_hue_of_a_verdict_and_each_is_seen_on_the_page() -> None:
    """WCAG 2.2, 1.4.11: a contrast of at least 3 for what carries meaning."""
    verdicts = [hue(look.colour) for name, look in VERDICT_LOOKS.items() if name != "skip"]  # grey has none
    for light, dark in ON_DARK.items():
        for colour, page in ((light, "#ffffff"), (dark, "#14171b")):
            assert min(abs((hue(colour) - of + 180) % 360 - 180) for of in verdicts) > 8, colour
            bright, dim = sorted((luminance(colour), luminance(page)), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= 3, colour
    assert len(set(LANES)) == 8


def parts(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def hue(colour: str) -> float:
    return 360 * colorsys.rgb_to_hsv(*parts(colour))[0]


def luminance(colour: str) -> float:
    linear = [(part + 0.055) / 1.055 for part in parts(colour)]
    return sum(weight * part**2.4 for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("window", "title"),
    [
        ((0, 2 * 10**9), "time (s)"),
        ((10**9, 10**9 + 10**6), "time (ms after 1 s)"),
        ((1_234_567_000, 1_234_568_000), "time (µs after 1.234 s)"),
        ((1_234_567_100, 1_234_567_200), "time (ns after 1.234567 s)"),
    ],
)
def test_times_are_counted_from_a_round_one(flows: Records, window: tuple[int, int], title: str) -> None:
    spec = over_time(flows, "throughput", lanes(flows), Window(*window, 600)).spec
    assert spec["encoding"]["x"]["axis"]["title"] == title
    assert spec["encoding"]["x"]["scale"]["domain"] == list(window)


def test_a_stall_is_shaded_where_it_is_and_named_where_there_is_room(flows: Records) -> None:
    window = whole(flows)
    long = Span(0, window.to_ns // 2, "application, 1 s")
    short = Span(window.to_ns - 1000, window.to_ns + 10**9, "ACK owed")
    chart = over_time(flows, "seq", lanes(flows), window, spans=[long, short, Span(window.to_ns + 1, window.to_ns + 2)])
    (shaded,) = [layer for layer in chart.spec["layer"] if layer["mark"]["type"] == "rect"]
    assert rows(chart.data[shaded["data"]["name"]]) == [
        {"t": 0, "x2": window.to_ns // 2, "label": "application, 1 s"},
        {"t": window.to_ns - 1000, "x2": window.to_ns, "label": "ACK owed"},
    ]
    svg = chart._repr_svg_()
    assert "application, 1 s" in svg
    assert "ACK owed" not in svg


def test_a_name_from_a_plan_is_data_and_never_an_expression(flows: Records) -> None:
    spec: dict[str, Any] = dict(over_time(flows, "throughput", lanes(flows), whole(flows)).spec)
    texts = json.dumps([layer["mark"] for layer in spec["layer"]]) + json.dumps(spec["encoding"]["x"])
    assert not any(flow in texts for flow in flows.flows)


def test_files_of_all_kinds_show_the_same_and_are_the_same_again(flows: Records, tmp_path: Path) -> None:
    charts = [over_time(flows, name, lanes(flows), whole(flows)) for name in ("throughput", "seq")]
    svg = drawing(charts)
    assert svg == drawing(charts)
    for chart in charts:
        assert chart.title in svg
    for flow in flows.flows:
        assert flow in svg
    assert save(svg, tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert save(svg, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"want a name that ends in \.svg, \.png, \.pdf"):
        save(svg, tmp_path / "a.gif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png"]


def test_every_figure_of_a_point_is_a_specification_that_vega_compiles(flows: Records) -> None:
    for name in figures(flows):
        chart = over_time(flows, name, lanes(flows), whole(flows))
        compiled = vl_convert.vegalite_to_vega(chart.whole())
        assert bool(compiled["marks"]) == (chart.range is not None), name


def test_behind_the_last_packet_there_is_nothing(flows: Records) -> None:
    last = int(flows.column("time_ns").max())
    chart = over_time(flows, "throughput", lanes(flows), Window(last + 10**9, last + 2 * 10**9, 600))
    assert (chart.range, chart.spoken.rpartition(": ")[2]) == (None, "nothing")


@pytest.mark.parametrize(
    ("of", "name", "words"),
    [
        ("loss", "throughput", "bulk; at most 727 Mb/s"),
        ("ack_owed", "seq", "window; at most 6.86 MB"),  # whose axis begins at 6.69 MB
        ("delayed_ack", "rtt", "bulk/0; at most 41.1 ms"),  # whose axis is logarithmic
        ("loss", "own_queue", "bulk; at most 0 B"),
    ],
)
def test_who_hears_a_figure_is_told_its_greatest_value(of: str, name: str, words: str) -> None:
    records = load_raw(FIXTURES / of)
    assert over_time(records, name, lanes(records), whole(records)).spoken.endswith(words)


def test_a_moment_is_a_line_from_top_to_bottom(flows: Records) -> None:
    """Where an expectation over time is violated; of a figure of one connection only that one's."""
    condition = {"bulk": {"verdict": "fail", "text": "too small", "time_ns": 123_456_789, "conn": 0}}
    answers = {"always cwnd min 2.0": {**condition, "brief": {"verdict": "pass"}}}
    for lane, want in ((("bulk", 0), [123_456_789]), (("brief", 0), [])):
        chart = chart_of(flows, "cwnd", [lane], whole(flows), [], answers)
        rules = [layer for layer in chart.spec["layer"] if layer["mark"].get("color") == VIOLATION]
        assert [at for layer in rules for at in chart.data[layer["data"]["name"]]["t"]] == want
        assert all(layer["mark"]["type"] == "rule" for layer in rules)
        assert all(layer["encoding"]["y"] == {"value": 0} for layer in rules)
