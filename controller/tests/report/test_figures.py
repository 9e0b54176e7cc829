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
from testctl.report.draw import draw_sequence, new_figure
from testctl.report.figure_spec import first_match, missing, same_value
from testctl.report.figures import paper_figures
from testctl.report.stalls import Stall
from testctl.results import Run


def test_a_stall_too_short_for_a_label_has_none_unless_it_is_the_longest() -> None:
    def labels(*lengths_ms: int) -> list[str]:
        stalls = [
            Stall("bulk", 0, at * 10**8, at * 10**8 + length * 10**6, "", "", "", "")
            for at, length in enumerate(lengths_ms)
        ]
        axes = new_figure(6, 4).subplots()
        draw_sequence(axes, {}, stalls, "", (0.0, 1.0))
        return [text.get_text() for text in axes.texts if text.get_text()]

    assert labels(60, 2, 49, 50) == ["60 ms", "50 ms"]
    assert labels(2, 1) == ["2 ms"]


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
    assert [path.name for path in written] == ["paper.png", *(f"paper-{n}.png" for n in range(1, 5))]
    assert all(path.stat().st_size > 5_000 for path in written)


def test_a_figure_that_no_point_meets_says_so(run: Run, tmp_path: Path) -> None:
    specs = [
        FigureSpec("none", "sequence", when={"ends.cc": ("reno",)}),
        FigureSpec("other flow", "sequence", flow="x"),
    ]
    assert len(paper_figures(run, tmp_path, specs)) == 3
    assert paper_figures(run, tmp_path, []) == []
    assert missing(specs[0], run.points) == "no point of this run meets `when`"


def test_a_figure_whose_points_have_no_packets_says_what_they_are(run: Run) -> None:
    spec = FigureSpec("a", "throughput", when={"sender.htb_ecn_threshold": ("50kB",)})
    assert missing(spec, run.points) == "its point is broken"
    both = FigureSpec("a", "throughput", when={"sender.htb_ecn_threshold": ("50kB", "51kB")})
    assert missing(both, run.points) == "all of its 2 points are broken or skip"


def test_a_run_without_figures_does_without_matplotlib() -> None:
    modules = "testctl.execution.point, testctl.execution.run, testctl.execution.assess, testctl.report"
    program = f"import sys, {modules}\nprint(*sorted({{'matplotlib', 'pandas', 'plotly'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
