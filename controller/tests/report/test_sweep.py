# SPDX-License-Identifier: Apache-2.0
"""A metric over swept parameters: the data of a figure, and that every way to draw it shows just these."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.core.units import unit_of
from testctl.plan import FigureSpec
from testctl.report.draw import new_figure
from testctl.report.draw_sweep import draw_sweep, facets
from testctl.report.figure_spec import specs_of
from testctl.report.figures import paper_figures
from testctl.report.sweep import axis_of, sweep_of
from testctl.report.sweep_choice import sweeps_of
from testctl.report.sweep_data import Cell, Sweep
from testctl.results import Run

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


def declared(run: Run) -> list[Sweep]:
    return sweeps_of(run.points, specs_of(run), run.summary)


def test_a_line_is_the_median_over_x_for_each_value_of_by_and_facet(run: Run) -> None:
    found = declared(run)[0]
    assert (found.x.values, found.x.numbers) == (("1ms", "3ms", "10ms", "30ms"), (1e6, 3e6, 1e7, 3e7))
    assert found.by.values == ("15kB", "60kB", "250kB")
    assert [panel.name for panel in found.panels] == ["cubic", "reno", "dctcp"]
    cell = line(found, "cubic", "15kB")["10ms"]
    assert cell.n == 3
    assert (cell.lo, cell.y, cell.hi) == pytest.approx((0.8, 0.8375, 0.875))


def test_a_value_that_is_missing_is_a_gap_and_is_counted(run: Run) -> None:
    found = declared(run)[0]
    gap = line(found, "reno", "60kB")["3ms"]
    assert (gap.y, gap.lo, gap.hi, gap.n, gap.missing) == (None, None, None, 0, 3)
    partly = line(found, "dctcp", "15kB")["1ms"]
    assert (partly.n, partly.missing) == (2, 1)
    assert found.caption == (
        "median, from least to greatest of up to 3 points each (repeat); "
        "4 of 108 points have no value: 3 invalid, 1 broken"
    )
    axes = new_figure(6, 4).subplots()
    draw_sweep(axes, facets(found)[1])
    drawn = next(one for one in axes.get_lines() if one.get_label() == "60kB")
    assert np.isnan(np.asarray(drawn.get_ydata(), dtype=float)).tolist() == [False, True, False, False]
    assert (axes.get_xscale(), axes.get_ylim()[0]) == ("log", 0)


def test_a_category_gets_bars_and_what_else_varies_is_said(run: Run) -> None:
    found = declared(run)[1]
    assert found.bars
    assert found.x.values == ("cubic", "reno", "dctcp")
    assert "of up to 12 points each (delay, repeat)" in found.caption
    axes = new_figure(6, 4).subplots()
    draw_sweep(axes, facets(found)[0])
    assert len(axes.patches) == 9
    assert [text.get_text() for text in axes.get_xticklabels()] == ["cubic", "reno", "dctcp"]


def test_a_distribution_is_of_the_points_that_meet_when(run: Run) -> None:
    found = declared(run)[3]
    (panel,) = found.panels
    assert [one.name for one in panel.lines] == ["1ms", "3ms", "10ms", "30ms"]
    assert [len(one.cells) for one in panel.lines] == [1] * 4
    assert [one.cells[0].n for one in panel.lines] == [18, 15, 18, 18]
    assert found.caption == "69 points; 3 of 72 points have no value: 3 invalid"


def test_one_point_each_has_no_interval(once: Run) -> None:
    spec = FigureSpec("a", "metric", metric="throughput_bps", x="switch.delay", by="switch.buffer", facet="hosts.cc")
    found = sweep_of(spec, once.points)
    assert found.caption == "one point each; 2 of 36 points have no value: 1 invalid, 1 broken"
    assert (found.unit.name, found.unit.size) == ("Mb/s", 1e6)


def test_a_plan_without_such_a_figure_gets_what_it_expects_over_what_it_sweeps(once: Run) -> None:
    (found,) = declared(once)
    assert (found.metric, found.x.key, found.by.key) == ("saturation", "switch.delay", "switch.buffer")
    bare = dataclasses.replace(once, summary={})
    assert declared(bare)[0].metric == "throughput_bps"
    assert declared(dataclasses.replace(once, points=once.points[:1])) == []


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


def test_of_many_values_some_are_labelled() -> None:
    assert len(axis_of("a.b", [str(n) for n in range(1, 60)]).labelled) <= 13
    assert axis_of("a.b", ["1", "2", "4", "8", "16", "32", "64"]).labelled == list(range(7))


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
    axes = new_figure(6, 4).subplots()
    draw_sweep(axes, facets(found)[0])
    assert axes.get_yscale() == "log"


def test_a_figure_of_several_flows_says_what_its_values_are(run: Run) -> None:
    flows: dict[str, Any] = {"a": {"goodput_bps": 1e6}, "b": {"goodput_bps": 2e6}, "*": {"jain": 0.9}}
    points = [dataclasses.replace(point, metrics=flows, verdict="pass") for point in run.points]
    spec = FigureSpec("a", "metric", metric="goodput_bps", x="switch.delay")
    assert "values: greatest of all flows" in sweep_of(spec, points).caption
    assert sweep_of(dataclasses.replace(spec, flow="a"), points).panels[0].lines[0].cells[0].y == 1e6
    assert sweep_of(dataclasses.replace(spec, metric="jain"), points).of == ""


def test_every_figure_is_written(run: Run, tmp_path: Path) -> None:
    written = paper_figures(run, tmp_path / "figures")
    assert [path.name for path in written] == ["paper.png", *(f"paper-{n}.png" for n in range(1, 5))]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert FIGURES.count("kind:") == 4


def test_a_figure_without_any_value_says_so(run: Run) -> None:
    found = sweep_of(FigureSpec("a", "box", metric="goodput_bps", x="switch.delay", by="hosts.cc"), run.points)
    assert found.caption.startswith("108 of 108 points have no value")
    axes = new_figure(6, 4).subplots()
    draw_sweep(axes, facets(found)[0])
    assert "no value" in [text.get_text() for text in axes.texts]
