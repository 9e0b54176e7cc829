# SPDX-License-Identifier: Apache-2.0
"""Figures that a plan asks for: what is read, what is refused, which point is drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from testctl.curves.core.figure import far_apart
from testctl.plan import FigureSpec
from testctl.report.figure_spec import first_match, missing, same_value
from testctl.report.figures import one_axis, paper_figures
from testctl.report.plan_charts import chart_of
from testctl.results import Run


@pytest.mark.parametrize(
    ("rtt_us", "log"),
    [
        ([70, 80, 90, 84_000], True),  # one ACK that came when the timer fired
        ([70, 80, 90, 7_000], False),
        ([70, 80, 90], False),
        ([0, 70, 84_000], False),  # 0 has no place on a logarithmic axis
        ([], False),
    ],
)
def test_round_trip_times_are_all_seen_beside_one_far_above(rtt_us: list[int], log: bool) -> None:
    assert far_apart([np.array(rtt_us, np.int64) * 1000]) is log


def test_values_are_compared_as_quantities() -> None:
    assert same_value("2gbit", "2000mbit")
    assert same_value("10kB", "10000")
    assert not same_value("10kB", "10KiB")
    assert not same_value("dctcp", "dctcp_bug")


def test_the_first_point_that_meets_it_is_drawn(run: Run) -> None:
    spec = FigureSpec("a", "throughput", when={"ends.cc": ("dctcp",), "sender.htb_mark": ("ack", "data")})
    assert first_match(spec, run.points) == run.points[4]
    by_setting = FigureSpec("a", "throughput", when={"receiver.cc": ("dctcp_resched",)})
    assert first_match(by_setting, run.points) == run.points[8]
    assert first_match(FigureSpec("a", "throughput", when={"ends.cc": ("reno",)}), run.points) is None
    assert first_match(FigureSpec("a", "throughput", when={"ends.mtu": ("1500",)}), run.points) is None


def test_the_plan_that_the_run_kept_says_which_figures(run: Run, tmp_path: Path) -> None:
    written = paper_figures(run, tmp_path)
    names = ["paper", *(f"paper-{n}" for n in range(1, 5))]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("png", "svg", "pdf")]
    heads = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
    assert all(path.read_bytes().startswith(heads[path.suffix]) for path in written)
    whole = (tmp_path / "paper.svg").read_text(encoding="utf-8")
    for words in ("Figure 2. Marking data, with the bug", "Figure 4. Sequence number", "bins of 10 ms", "time (s)"):
        assert f">{words}" in whole


def test_a_figure_that_no_point_meets_says_so(run: Run, tmp_path: Path) -> None:
    nobody = FigureSpec("none", "sequence", when={"ends.cc": ("reno",)})
    other = FigureSpec("other flow", "sequence", flow="x")
    late = FigureSpec("behind the end", "throughput", from_ns=10**12)
    said = [chart_of(spec, run.points, {}).data["words"]["text"] for spec in (nobody, other, late)]
    assert said == [["no point of this run meets `when`"], ["not recorded"], ["not recorded"]]
    assert len(paper_figures(run, tmp_path, [nobody])) == 6
    assert paper_figures(run, tmp_path, []) == []


def test_throughputs_share_an_axis(run: Run) -> None:
    """Also in a time that only one of them has."""
    specs = [FigureSpec(f"{n}", "throughput", when={"ends.cc": (cc,)}) for n, cc in enumerate(("dctcp_bug", "dctcp"))]
    charts = one_axis([chart_of(spec, run.points, {}) for spec in specs])
    assert charts[0].range == charts[1].range != (0, 0)
    assert charts[0].title == "0"


def test_a_figure_whose_points_have_no_packets_says_what_they_are(run: Run) -> None:
    spec = FigureSpec("a", "throughput", when={"sender.htb_ecn_threshold": ("50kB",)})
    assert missing(spec, run.points) == "its point is broken"
    both = FigureSpec("a", "throughput", when={"sender.htb_ecn_threshold": ("50kB", "51kB")})
    assert missing(both, run.points) == "all of its 2 points are broken or skip"


def test_a_run_without_figures_does_without_large_libraries() -> None:
    modules = "testctl.execution.point, testctl.execution.run, testctl.execution.assess, testctl.report"
    program = f"import sys, {modules}\nprint(*sorted({{'duckdb', 'pandas', 'plotly'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
