# SPDX-License-Identifier: Apache-2.0
"""Response functions in figures, on the page and in the terminal."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.charts.response import responses
from testctl.plan import FigureSpec, Judgement
from testctl.report import print_summary
from testctl.report.figures import paper_figures
from testctl.report.page import render_report
from testctl.report.response import declared, response
from testctl.results import Run, RunPoint
from testctl.results.verdict_file import VerdictFile

PLAN = """\
figures:
  - {title: Two <of> them, kind: response, when: {hosts.cc: [reno, cubic]}}
  - {title: One flow, kind: response, flow: b}
  - {title: None, kind: response, when: {hosts.cc: vegas}}
"""
RATES = {"a": 1e-2, "b": 1e-4}
WINDOWS = {"reno": (12.0, 120.0), "cubic": (12.0, 140.0), "areno": (40.0, 300.0)}


def point(folder: Path, cc: str, number: int) -> RunPoint:
    flows = [{"name": name, "from": "h1", "to": "h2", "options": {}} for name in RATES]
    flows.append({"name": "lossless", "from": "h1", "to": "h2", "options": {"cc": "bbr"}})
    settings = {"h1": {"cc": cc}, "h2": {"cc": cc}}
    where = folder / "points" / f"{number:012x}"
    where.mkdir(parents=True)
    (where / "point.json").write_text(json.dumps({"flows": flows, "settings": settings}))
    metrics: dict[str, dict[str, Any]] = {
        name: {"random_loss_rate": rate, "window_segments": window, "throughput_bps": 1e6}
        for (name, rate), window in zip(RATES.items(), WINDOWS[cc], strict=True)
    }
    metrics["lossless"] = {"random_loss_rate": None, "window_segments": 5000.0}
    file = VerdictFile(where.name, Judgement("pass"), Judgement("pass"))
    return RunPoint(where, where.name, (("hosts", "cc", cc),), "pass", "", "0" * 64, 1.0, 1.0, metrics, file)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    points = tuple(point(tmp_path, cc, number) for number, cc in enumerate(WINDOWS))
    (tmp_path / "plan.yaml").write_text(PLAN)
    return Run(tmp_path, {"plan": "responses", "digest": "0" * 64}, points)


def test_a_curve_is_of_a_congestion_control(run: Run) -> None:
    shown = response(FigureSpec("All", "response"), run.points)
    assert [(curve.name, curve.rates, curve.windows) for curve in shown.curves] == [
        (cc, (1e-4, 1e-2), (rare, often)) for cc, (often, rare) in WINDOWS.items()
    ]
    assert shown.reno.rates == pytest.approx((1e-4, 1e-2))
    assert shown.reno.windows == pytest.approx((122.47, 12.247), rel=1e-3)


def test_flows_with_one_rate_are_averaged(run: Run) -> None:
    other = {"b": {**run.points[0].metrics["b"], "window_segments": 100.0}}
    twice = (*run.points, dataclasses.replace(run.points[0], metrics=other))
    curve = response(FigureSpec("One", "response", flow="b", when={"hosts.cc": ("reno",)}), twice).curves[0]
    assert (curve.rates, curve.windows) == ((1e-4,), (110.0,))


def test_the_line_to_compare_with_has_a_value_at_each_rate(run: Run) -> None:
    """On the page as in the terminal, whose headings are as precise."""
    rates = {"a": {**run.points[0].metrics["a"], "random_loss_rate": 0.0012}}
    rates["b"] = {**run.points[0].metrics["b"], "random_loss_rate": 0.0014}
    more = dataclasses.replace(run, points=(*run.points, dataclasses.replace(run.points[0], metrics=rates)))
    table = responses(response(FigureSpec("All", "response"), more.points)).more["table"]
    assert table["heads"] == ["cc", "0.0001", "0.0012", "0.0014", "0.01"]
    assert table["rows"][-1][1:] == ["122.5", "35.36", "32.73", "12.25"]
    out = io.StringIO()
    print_summary(more, Console(file=out, width=100, color_system=None))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["window", "(segments)", *table["heads"][1:]] in lines
    assert ["Reno:", "√(3/2)", "/", "√p", "122", "35.4", "32.7", "12.2"] in lines


def test_a_plan_declares_them(run: Run) -> None:
    assert [(one.title, [curve.name for curve in one.curves]) for one in declared(run)] == [
        ("Two <of> them", ["reno", "cubic"]),
        ("One flow", ["reno", "cubic", "areno"]),
    ]


def test_both_axes_are_logarithmic_and_no_two_curves_look_alike(run: Run) -> None:
    shown = response(FigureSpec("All", "response"), run.points)
    many = type(shown)(
        shown.title, tuple(dataclasses.replace(shown.curves[0], name=f"cc{n}") for n in range(16)), shown.reno
    )
    chart = responses(many)
    encoding = chart.spec["layer"][-1]["encoding"]
    assert [encoding[axis]["scale"]["type"] for axis in "xy"] == ["log", "log"]
    assert (
        len(set(zip(encoding["color"]["scale"]["range"] * 2, encoding["shape"]["scale"]["range"], strict=False))) == 16
    )
    assert chart.data["words"]["text"] == [shown.reno.name]
    assert chart.more["table"]["rows"][0] == ["cc0", "120", "12"]


def test_figures_page_and_terminal(run: Run, tmp_path: Path) -> None:
    written = paper_figures(run, tmp_path / "figures")
    assert len(written) == 4 * 3
    drawn = (tmp_path / "figures" / "paper.svg").read_text(encoding="utf-8")
    assert all(f">{words}" in drawn for words in ("Two &lt;of&gt; them", "reno", "cubic", "no point of this run meets"))
    assert "Two <of> them" not in render_report(run, {})
    out = io.StringIO()
    print_summary(run, Console(file=out, width=100, color_system=None))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert ["window", "(segments)", "0.0001", "0.01"] in lines
    assert ["cubic", "140", "12"] in lines
    assert ["areno", "300"] in lines
