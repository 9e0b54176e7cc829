# SPDX-License-Identifier: Apache-2.0
"""Figures that a plan asks for: what is read, what is refused, which point is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testctl.report import FigureSpec, paper_figures, parse_figures
from testctl.report.draw import draw_rtt, draw_sequence, new_figure
from testctl.report.figure_spec import first_match, same_value
from testctl.report.payload import round_trips
from testctl.report.series import Lane
from testctl.report.stalls import Stall
from testctl.results import Run
from testctl_agent.spec.errors import PlanError


def test_a_figure_is_read_with_its_units() -> None:
    raw = {
        "title": "Figure 2",
        "kind": "throughput",
        "bin": "1ms",
        "flow": "bulk",
        "when": {"ends.cc": "dctcp_bug", "sender.tso": True, "sender.htb_ecn_threshold": ["10kB", 30000]},
        "from": "100ms",
        "to": "1s",
    }
    when = {"ends.cc": ["dctcp_bug"], "sender.tso": ["on"], "sender.htb_ecn_threshold": ["10kB", "30000"]}
    assert parse_figures([raw]) == [FigureSpec("Figure 2", "throughput", 10**6, "bulk", when, 10**8, 10**9)]
    assert parse_figures(None) == []


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ({}, "p: figures: want a list of at most 20 figures; got {}"),
        (["x"], "p.0: figures: want a mapping with title, kind"),
        ([{"title": "a", "colour": 1}], "p.0.colour: figures: want one of title, kind, bin.*; got 'colour'"),
        ([{}], "p.0.title: figures: title: want text; got None"),
        (
            [{"title": "a", "kind": "pie"}],
            "p.0.kind: figures: kind: want one of throughput, sequence, time_sequence, response; got 'pie'",
        ),
        ([{"title": "a", "bin": 10}], "p.0.bin: figures: bin: want a time with its unit.*; got 10"),
        ([{"title": "a", "bin": "1ns"}], "p.0.bin: figures: bin: want at least 1us; got '1ns'"),
        ([{"title": "a", "from": "2s", "to": "1s"}], "p.0.to: figures: to: want a time after `from`; got '1s'"),
        ([{"title": "a", "when": ["x"]}], "p.0.when: figures: when: want a mapping; got"),
        ([{"title": "a", "when": {"cc": 1}}], r"p.0.when.cc: figures: when: want ENTITY\.PARAMETER"),
        ([{"title": "a", "when": {"a.b": [[1]]}}], r"p.0.when.a\.b: figures: when: want ENTITY\.PARAMETER"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(raw: Any, wanted: str) -> None:
    with pytest.raises(PlanError, match=wanted.replace("{}", r"\{\}")):
        parse_figures(raw, lambda path: ".".join(["p", *map(str, path)]))


def test_a_stall_too_short_for_a_label_has_none_unless_it_is_the_longest() -> None:
    def labels(*lengths_ms: int) -> list[str]:
        stalls = [
            Stall("bulk", 0, at * 10**8, at * 10**8 + length * 10**6, "", "", "", "")
            for at, length in enumerate(lengths_ms)
        ]
        axes = new_figure(6, 4).subplots()
        draw_sequence(axes, Lane("bulk", 0), stalls, "", (0.0, 1.0))
        return [text.get_text() for text in axes.texts if text.get_text()]

    assert labels(60, 2, 49, 50) == ["60 ms", "50 ms"]
    assert labels(2, 1) == ["2 ms"]


@pytest.mark.parametrize(
    ("rtt_us", "unit", "scale"),
    [
        ([70, 80, 90, 84_000], "ms", "log"),  # one ACK that came when the timer fired
        ([70, 80, 90, 7_000], "ms", "linear"),
        ([70, 80, 90], "µs", "linear"),
        ([0, 70, 84_000], "ms", "linear"),  # 0 has no place on a logarithmic axis
    ],
)
def test_round_trip_times_are_all_seen_beside_one_far_above(rtt_us: list[int], unit: str, scale: str) -> None:
    at_ns, rtt_ns = np.arange(len(rtt_us)) * 10**6, np.array(rtt_us) * 1000
    lane = Lane("bulk", 0, rtt_at_ns=at_ns, rtt_ns=rtt_ns)
    axes = new_figure(6, 4).subplots()
    draw_rtt(axes, [lane], (0.0, 1.0))
    assert (axes.get_ylabel(), axes.get_yscale()) == (f"RTT ({unit})", scale)
    shown = round_trips([lane], 100)
    assert shown is not None
    assert (shown["unit"], shown["log"]) == (unit, scale == "log")
    assert shown["lines"][0]["y"] == [one * {"ms": 1e-3, "µs": 1}[unit] for one in rtt_us]


def test_values_are_compared_as_quantities() -> None:
    assert same_value("2gbit", "2000mbit")
    assert same_value("10kB", "10000")
    assert not same_value("10kB", "10KiB")
    assert not same_value("dctcp", "dctcp_bug")


def test_the_first_point_that_meets_it_is_drawn(run: Run) -> None:
    spec = FigureSpec("a", "throughput", when={"ends.cc": ["dctcp"], "sender.htb_mark": ["ack", "data"]})
    assert first_match(spec, run.points) == run.points[4]
    by_setting = FigureSpec("a", "throughput", when={"receiver.cc": ["dctcp_resched"]})
    assert first_match(by_setting, run.points) == run.points[8]
    assert first_match(FigureSpec("a", "throughput", when={"ends.cc": ["reno"]}), run.points) is None
    assert first_match(FigureSpec("a", "throughput", when={"ends.mtu": ["1500"]}), run.points) is None


def test_the_plan_that_the_run_kept_says_which_figures(run: Run, tmp_path: Path) -> None:
    written = paper_figures(run, tmp_path)
    assert [path.name for path in written] == ["paper.png", *(f"paper-{n}.png" for n in range(1, 5))]
    assert all(path.stat().st_size > 5_000 for path in written)


def test_a_figure_that_no_point_meets_says_so(run: Run, tmp_path: Path) -> None:
    specs = [FigureSpec("none", "sequence", when={"ends.cc": ["reno"]}), FigureSpec("other flow", "sequence", flow="x")]
    assert len(paper_figures(run, tmp_path, specs)) == 3
    assert paper_figures(run, tmp_path, []) == []
