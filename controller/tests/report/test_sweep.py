# SPDX-License-Identifier: Apache-2.0
"""A metric over swept parameters: the data of a figure, and that every way to draw it shows just these."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.charts import Chart, drawing, save
from testctl.charts.heatmap import NUMBERED
from testctl.charts.sweep_data import Cell, Line, Panel, Sweep
from testctl.charts.swept import swept
from testctl.core.units import unit_of
from testctl.plan import FigureSpec
from testctl.report.figures import paper_figures
from testctl.report.plan_charts import bounds_of
from testctl.report.sweep import axis_of, sweep_of
from testctl.report.sweep_choice import asked_spec, sweeps_of_run
from testctl.report.sweep_terminal import _Scale, plot
from testctl.results import Run
from testctl_agent.spec.errors import PlanError

from controller.tests.support.synthetic_sweep import FIGURES, make_sweep


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """36 points, three times each."""
    return make_sweep(tmp_path_factory.mktemp("results"), repeat=3)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """36 points, of a plan without figures."""
    return make_sweep(tmp_path_factory.mktemp("results"), figures="")


def line(sweep: Sweep, panel: str, name: str) -> dict[str, Cell]:
    """The cells of a line by the value of x."""
    (found,) = (one for one in sweep.panels if one.name == panel)
    (cells,) = (one.cells for one in found.lines if one.name == name)
    return dict(zip(sweep.x.values, cells, strict=True))


def rows(chart: Chart, name: str = "cells") -> list[dict[str, Any]]:
    columns = chart.data[name]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def marks(chart: Chart) -> list[str]:
    return [layer["mark"]["type"] for layer in chart.spec["layer"]]


def test_a_line_is_the_median_over_x_for_each_value_of_by_and_facet(run: Run) -> None:
    found = sweeps_of_run(run)[0]
    assert (found.x.values, found.x.numbers) == (("1ms", "3ms", "10ms", "30ms"), (1e6, 3e6, 1e7, 3e7))
    assert found.by.values == ("15kB", "60kB", "250kB")
    assert [panel.name for panel in found.panels] == ["cubic", "reno", "dctcp"]
    cell = line(found, "cubic", "15kB")["10ms"]
    assert cell.n == 3
    assert (cell.lo, cell.y, cell.hi) == pytest.approx((0.8, 0.8375, 0.875))


def test_a_value_that_is_missing_is_a_gap_and_is_counted(run: Run) -> None:
    found = sweeps_of_run(run)[0]
    gap = line(found, "reno", "60kB")["3ms"]
    assert (gap.y, gap.lo, gap.hi, gap.n, gap.missing) == (None, None, None, 0, 3)
    partly = line(found, "dctcp", "15kB")["1ms"]
    assert (partly.n, partly.missing) == (2, 1)
    assert found.caption == (
        "median, from least to greatest of up to 3 points each (repeat); "
        "4 of 108 points have no value: 3 invalid, 1 broken"
    )
    chart = swept(found)
    there = [row for row in rows(chart) if (row["facet"], row["by"], row["point"]) == ("reno", "60kB", None)]
    drawn = [row["y"] for row in there]
    assert [y is None for y in drawn] == [False, True, False, False]
    encoding = chart.spec["spec"]["layer"][0]["encoding"]
    assert (encoding["x"]["scale"]["type"], encoding["y"]["scale"]["domainMin"]) == ("log", 0)


def test_few_points_of_a_category_are_drawn_each_and_what_else_varies_is_said(run: Run) -> None:
    found = sweeps_of_run(run)[1]
    assert found.x.values == ("cubic", "reno", "dctcp")
    assert "of up to 12 points each (delay, repeat)" in found.caption
    chart = swept(found)
    assert marks(chart) == ["point", "tick"]
    assert chart.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["cubic", "reno", "dctcp"]
    assert (len(rows(chart, "points")), rows(chart, "points")[0]["point"]) == (104, "delay 10ms, repeat 2")


def test_each_panel_has_its_own_points_alone(run: Run) -> None:
    """As the library draws them: it gives a panel its part of one data set, and all of any other."""
    spec = FigureSpec("a", "metric", metric="saturation", x="switch.delay", by="switch.buffer", facet="hosts.cc")
    found = sweep_of(spec, run.points)
    drawn = drawing([swept(found)])
    assert re.findall(r'aria-label="[^"]*hosts.cc: (\w+); point: ', drawn) == [
        panel.name for panel in found.panels for line in panel.lines for cell in line.cells for _ in range(cell.n)
    ]


def test_one_point_of_a_category_is_a_bar_and_of_many_a_median_and_its_range(run: Run, once: Run) -> None:
    spec = FigureSpec(
        "a", "metric", metric="throughput_bps", x="hosts.cc", by="switch.buffer", when={"switch.delay": ("3ms",)}
    )
    assert marks(swept(sweep_of(spec, once.points))) == ["bar"]
    many = dataclasses.replace(spec, when={}, by="")
    assert marks(swept(sweep_of(many, run.points))) == ["bar", "rule"]


def test_every_category_has_a_label(run: Run) -> None:
    """Of many or long ones the labels are turned."""
    names = tuple(f"congestion{n}" for n in range(14))
    chart = swept(dataclasses.replace(sweeps_of_run(run)[1], x=axis_of("hosts.cc", names)))
    axis = chart.spec["layer"][0]["encoding"]["x"]["axis"]
    assert (axis["labelOverlap"], axis["labelAngle"]) == (False, -40)
    drawn = drawing([chart])
    assert [name for name in names if f">{name}<" not in drawn] == []


def test_what_the_plan_expects_is_a_dashed_line(run: Run) -> None:
    bounds = bounds_of(run.summary, "saturation")
    assert bounds == ((0.6, "at least 0.6"),)
    chart = swept(sweeps_of_run(run)[0], bounds)
    assert chart.data["bounds"] == {"y": [0.6], "text": ["expected at least 0.6"], "rise": [0.0]}
    drawn = drawing([chart])
    assert drawn.count(">expected at least 0.6<") == 3
    assert all(f">{words}<" in drawn for words in ("cubic", "reno", "dctcp", "1ms", "30ms", "15kB"))
    texts = ("at least 0.6", "at least 0.61", "at most 0.62")
    near = swept(sweeps_of_run(run)[0], [(float(text.split()[-1]), text) for text in texts])
    drawn = drawing([near])
    heights = [float(re.findall(rf"translate\(\S+?,(\S+?)\)[^>]*>expected {text}<", drawn)[0]) for text in texts]
    assert all(below - above >= 10 for below, above in itertools.pairwise(heights)), "no label is over another"
    far = swept(sweeps_of_run(run)[0], [(40.0, "at most 40")])
    assert "bounds" not in far.data
    assert far.note.endswith("expected at most 40: not on this axis")


def test_text_of_a_plan_is_data(run: Run) -> None:
    """Of what Vega evaluates, only the labels of numbers have text of a plan in them, as strings."""
    found = sweeps_of_run(run)[0]
    written = ('1"+alert(1)+"ms', *found.x.values[1:])
    chart = swept(dataclasses.replace(found, x=dataclasses.replace(found.x, values=written)))
    label = chart.spec["spec"]["layer"][0]["encoding"]["x"]["axis"]["labelExpr"]
    assert label.startswith(r'["1\"+alert(1)+\"ms", "3ms", "10ms", "30ms"][indexof([1000000.0, 3000000.0, ')


def test_each_flow_has_a_line_in_its_colour(run: Run) -> None:
    flows: dict[str, Any] = {"bulk": {"goodput_bps": 1e6}, "rival": {"goodput_bps": 2e6}, "*": {"jain": 0.9}}
    points = [dataclasses.replace(point, metrics=flows, verdict="pass") for point in run.points]
    for point in points:  # which was read from a run of one flow
        vars(point)["point"] = {**point.point, "flows": [{"name": "bulk"}, {"name": "rival"}]}
    spec = FigureSpec("a", "metric", metric="goodput_bps", x="switch.delay", by="flow")
    found = sweep_of(spec, points)
    assert (found.by.values, found.panels[0].lines[0].cells[0].n) == (("bulk", "rival"), 27)
    chart = swept(found)
    colour = chart.spec["layer"][-1]["encoding"]["color"]
    assert (colour["scale"]["domain"], colour["legend"]["title"]) == (["bulk", "rival"], "flow")
    drawn = drawing([chart])
    strokes = re.findall(r'aria-roledescription="line mark"[^>]* stroke="(#\w+)"', drawn)
    assert strokes == list(colour["scale"]["range"])
    assert all(f">{flow}<" in drawn for flow in ("bulk", "rival"))
    with pytest.raises(PlanError, match="metric: want one of a flow where a figure has one for each; got 'jain'"):
        asked_spec(points, "metric", "jain", x="switch.delay", by="flow")


def test_a_distribution_is_of_the_points_that_meet_when(run: Run) -> None:
    found = sweeps_of_run(run)[3]
    (panel,) = found.panels
    assert [one.name for one in panel.lines] == ["1ms", "3ms", "10ms", "30ms"]
    assert [len(one.cells) for one in panel.lines] == [1] * 4
    assert [one.cells[0].n for one in panel.lines] == [18, 15, 18, 18]
    assert found.caption == "69 points; 3 of 72 points have no value: 3 invalid"


def test_a_distribution_of_flows_counts_flows(run: Run) -> None:
    found = sweep_of(FigureSpec("a", "cdf", metric="throughput_bps", by="flow"), run.points)
    assert found.caption == "104 flows; 4 of 108 flows have no value: 3 invalid, 1 broken"


def test_one_point_each_has_no_interval(once: Run) -> None:
    spec = FigureSpec("a", "metric", metric="throughput_bps", x="switch.delay", by="switch.buffer", facet="hosts.cc")
    found = sweep_of(spec, once.points)
    assert found.caption == "one point each; 2 of 36 points have no value: 1 invalid, 1 broken"
    assert (found.unit.name, found.unit.size) == ("Mb/s", 1e6)


def test_a_plan_without_such_a_figure_gets_what_it_expects_over_what_it_sweeps(once: Run) -> None:
    (found,) = sweeps_of_run(once)
    assert (found.metric, found.x.key, found.by.key) == ("saturation", "switch.delay", "switch.buffer")
    bare = dataclasses.replace(once, summary={})
    assert sweeps_of_run(bare)[0].metric == "throughput_bps"
    assert sweeps_of_run(dataclasses.replace(once, points=once.points[:1])) == []


@pytest.mark.parametrize(
    ("values", "ascending", "log"),
    [
        (["30ms", "1ms", "10ms", "3ms"], ["1ms", "3ms", "10ms", "30ms"], True),
        (["10ms", "20ms", "30ms", "100ms"], ["10ms", "20ms", "30ms", "100ms"], True),
        (["9ms", "1ms", "5ms", "7ms", "3ms"], ["1ms", "3ms", "5ms", "7ms", "9ms"], False),
        (["1gbit", "100mbit"], ["100mbit", "1gbit"], False),
        (["0ms", "1ms", "10ms", "100ms"], ["0ms", "1ms", "10ms", "100ms"], False),
        (["9000", "1500"], ["1500", "9000"], False),
        (["1", "2", "4", "8", "16"], ["1", "2", "4", "8", "16"], True),
        (["6.12", "6.1"], ["6.12", "6.1"], False),
        (["none", "1mbit"], ["none", "1mbit"], False),
        (["cubic", "bbr"], ["cubic", "bbr"], False),
    ],
)
def test_an_axis_is_in_order_and_logarithmic_where_its_values_are_spaced_so(
    values: list[str], ascending: list[str], log: bool
) -> None:
    found = axis_of("a.b", values)
    assert (list(found.values), found.log) == (ascending, log)
    numbers = values[0] not in ("6.12", "none", "cubic")
    assert len(found.numbers) == (len(values) if numbers else 0)
    assert list(found.numbers) == sorted(found.numbers)


@pytest.mark.parametrize(
    ("metric", "value", "unit", "shown"),
    [("a_bps", 2e9, "Gb/s", 2), ("a_us", 2500, "ms", 2.5), ("a_s", 0.25, "ms", 250), ("a_bytes", 3e4, "kB", 30),
     ("jain", 0.5, "", 0.5)],
)  # fmt: skip
def test_the_axis_is_in_a_unit_that_reads_well(metric: str, value: float, unit: str, shown: float) -> None:
    found = unit_of(metric, [value])
    assert (found.name, value / found.size) == (unit, pytest.approx(shown))


def test_values_of_decades_make_the_metrics_axis_logarithmic(run: Run) -> None:
    first = run.points[0]
    wide = [dataclasses.replace(first, id=f"p{n}", metrics={"bulk": {"x_us": 10.0**n}}) for n in range(4)]
    found = sweep_of(FigureSpec("a", "metric", metric="x_us", x="switch.delay"), wide)
    assert found.log
    assert swept(found).spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_a_bar_of_the_terminal_has_no_length_at_the_least_value_of_a_logarithmic_axis() -> None:
    scale = _Scale(10, 1000, log=True, width=10)
    assert [scale.place(value) for value in (10, 100, 1000)] == [0, 40, 80]


def test_a_figure_of_several_flows_says_what_its_values_are(run: Run) -> None:
    flows: dict[str, Any] = {"a": {"goodput_bps": 1e6}, "b": {"goodput_bps": 2e6}, "*": {"jain": 0.9}}
    points = [dataclasses.replace(point, metrics=flows, verdict="pass") for point in run.points]
    spec = FigureSpec("a", "metric", metric="goodput_bps", x="switch.delay")
    assert "values: greatest of all flows" in sweep_of(spec, points).caption
    assert sweep_of(dataclasses.replace(spec, flow="a"), points).panels[0].lines[0].cells[0].y == 1e6
    assert sweep_of(dataclasses.replace(spec, metric="jain"), points).of == ""


HEATMAP = FigureSpec(
    "a", "heatmap", metric="saturation", x="switch.delay", by="switch.buffer", when={"hosts.cc": ("reno",)}
)


def test_a_heatmap_has_the_mean_of_each_cell_and_its_number(run: Run) -> None:
    found = sweep_of(HEATMAP, run.points)
    chart = swept(found, [(0.6, "at least 0.6")])
    at = {(row["by"], row["x text"]): row for row in rows(chart)}
    cell = at["15kB", "10ms"]
    assert cell["y"] == pytest.approx((0.65 + 0.68 + 0.71) / 3)
    assert (cell["words"], cell["value"], cell["range"], cell["n"]) == ("0.68", "0.68", "0.65 … 0.71", 3)
    assert [at["15kB", delay]["light"] for delay in ("1ms", "10ms", "30ms")] == [True, True, False]
    gap = at["60kB", "3ms"]
    assert (gap["y"], gap["words"], gap["value"], gap["n"]) == (None, "–", "–", 0)
    assert chart.note == (
        "mean, from least to greatest of 3 points each (repeat); 3 of 36 points have no value: 3 invalid"
    )
    assert marks(chart) == ["rect", "rect", "text", "text", "text"]
    encoding = chart.spec["layer"][1]["encoding"]
    assert encoding["x"]["scale"]["domain"] == ["1ms", "3ms", "10ms", "30ms"]
    assert encoding["y"]["scale"]["domain"] == ["250kB", "60kB", "15kB"]
    least, most = encoding["color"]["scale"]["domain"]
    assert (least, most) == pytest.approx((0.26, 0.97))
    assert encoding["color"]["scale"]["type"] == "linear"
    assert chart.more["table"]["rows"][0][1:3] == ["0.97 (0.97 … 0.97, 3 points)"] * 2


def test_a_heatmap_is_drawn_with_its_numbers(run: Run, tmp_path: Path) -> None:
    drawn = drawing([swept(sweep_of(HEATMAP, run.points))])
    assert all(f">{words}<" in drawn for words in ("0.68", "0.26", "–", "1ms", "250kB"))
    assert "#fde725" in drawn or "rgb(253, 231, 37)" in drawn
    panels = dataclasses.replace(HEATMAP, when={}, facet="hosts.cc")
    chart = swept(sweep_of(panels, run.points))
    assert chart.spec["columns"] == 2
    assert all(save(drawing([chart]), tmp_path / f"b{kind}").stat().st_size > 1000 for kind in (".svg", ".png", ".pdf"))


@pytest.mark.parametrize(("count", "numbered"), [(NUMBERED, True), (NUMBERED + 1, False)])
def test_many_columns_have_no_room_for_numbers(run: Run, count: int, numbered: bool) -> None:
    names = tuple(f"name{n}" for n in range(count))
    found = dataclasses.replace(
        sweep_of(HEATMAP, run.points), x=axis_of("hosts.cc", names), by=axis_of("a.b", ["one"]),
        panels=(Panel("", (Line("one", tuple(Cell((float(n),)) for n in range(count))),)),),
    )  # fmt: skip
    chart = swept(found)
    assert ("text" in marks(chart)) == numbered
    assert chart.more["wide"]


def test_colours_are_logarithmic_where_the_metric_is_and_equal_values_have_one(run: Run) -> None:
    first = run.points[0]
    at = [(("a", "x", n % 2), ("a", "y", n // 2)) for n in range(4)]
    wide = [dataclasses.replace(first, id=f"p{n}", metrics={"bulk": {"x_us": 10.0**n}}, tuples=at[n]) for n in range(4)]
    spec = FigureSpec("a", "heatmap", metric="x_us", x="a.x", by="a.y")
    scale = swept(sweep_of(spec, wide)).spec["layer"][1]["encoding"]["color"]
    assert (scale["scale"]["type"], scale["legend"]["values"]) == ("log", [0.001, 0.01, 0.1, 1.0])
    equal = [dataclasses.replace(point, metrics={"bulk": {"x_us": 2.0}}) for point in wide]
    colour = swept(sweep_of(spec, equal)).spec["layer"][1]["encoding"]["color"]
    assert colour["scale"]["domain"] == pytest.approx([1.0, 3.0])


def test_a_heatmap_in_the_terminal_is_a_grid_where_it_fits(run: Run) -> None:
    def text(width: int) -> str:
        console = Console(width=width, color_system=None)
        with console.capture() as caught:
            console.print(plot(sweep_of(HEATMAP, run.points), width))
        return caught.get()

    assert "15kB                            0.97 0.97 0.68 0.26" in text(80)
    assert "switch.buffer ↓  switch.delay →" in text(80)
    assert "least" in text(50), "a row for each cell"


def test_every_figure_is_written(run: Run, tmp_path: Path) -> None:
    assert len(paper_figures(run, tmp_path / "figures")) == 5 * 3
    assert FIGURES.count("kind:") == 4


def test_a_figure_without_any_value_says_so(run: Run) -> None:
    found = sweep_of(FigureSpec("a", "box", metric="goodput_bps", x="switch.delay", by="hosts.cc"), run.points)
    assert found.caption.startswith("108 of 108 points have no value")
    assert swept(found).data == {"words": {"text": ["no value"]}}


def test_multiples_of_the_same_quantity_are_numbers() -> None:
    assert axis_of("switch.buffer", ["2 bdp", "bdp", "0.5 bdp"]).values == ("0.5 bdp", "bdp", "2 bdp")
    assert axis_of("switch.buffer", ["2 bdp", "bdp", "0.5 bdp"]).numbers == (0.5, 1, 2)
    assert axis_of("switch.buffer", ["2 bdp", "2 rtt"]).numbers == ()
    assert axis_of("switch.buffer", ["2 bdp", "bdp + mtu"]).numbers == ()
