# SPDX-License-Identifier: Apache-2.0
"""What a user sees in the terminal, and what a machine gets."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console
from testctl.report import Drawing, Progress, print_plots, print_point, print_summary
from testctl.report.metrics import one_number
from testctl.report.plain_points import write_csv
from testctl.report.run_page import Found, run_page
from testctl.report.sweep_choice import sweeps_of_run
from testctl.report.terminal import MANY
from testctl.results import Run

Colours = Literal["standard"] | None


def shown(run: Run, *, terminal: bool, every: bool = False, width: int = 120, colours: Colours = "standard") -> str:
    out = io.StringIO()
    colours = colours if terminal else None
    console = Console(file=out, force_terminal=terminal, width=width if terminal else 80, color_system=colours)
    print_summary(run, console, every=every)
    return out.getvalue()


def sentences(text: str) -> list[str]:
    """The lines, where a sentence is one of them."""
    return re.sub(r"\n {4}(?=\S)", " ", text).splitlines()


def test_plain_output_has_a_line_a_point_with_named_values(run: Run) -> None:
    text = shown(run, terminal=False)
    assert "\x1b" not in text
    lines = text.splitlines()
    words = f"✗ fail  {run.points[0].id[:8]}  cc=dctcp_bug htb_mark=data htb_ecn_threshold=10kB  throughput "
    assert lines[0].startswith(words)
    assert ", stalls " in lines[0]
    passed = [line for line in lines if line.startswith("✓ pass  ") and " points  " in line]
    assert [line.split("  ")[1:3] for line in passed] == [
        ["3 points", "cc=dctcp_bug htb_mark=data|ack htb_ecn_threshold=30kB|10kB"],
        ["4 points", "cc=dctcp htb_mark=data|ack htb_ecn_threshold=10kB|30kB"],
        ["4 points", "cc=dctcp_resched htb_mark=data|ack htb_ecn_threshold=10kB|30kB"],
    ]
    assert "! broken  ffffffff  the lab was killed <after> 0 s & printed no more" in lines
    assert "✗ fail  marking data is steady <b>  got 0.9" in lines
    assert "11 pass  1 fail  1 skip  1 broken  of 14 in 61.5 s" in lines
    assert f"digest  {run.digest}" in lines
    assert lines[-1] == f"results  {run.path}"


EXPECTED = (
    "stall_ack_owed_count", "stall_ack_owed_longest_ms", "timeout_length_median_ms", "retransmission_timeouts",
    "packets_lost", "saturation", "rtt_p99_us", "goodput_bps", "oscillation_period_ms",
)  # fmt: skip


def expecting(run: Run) -> Run:
    """The run, of a plan that expects something of many metrics."""
    points = tuple(
        dataclasses.replace(
            point, metrics={flow: {**of, **dict.fromkeys(EXPECTED, 1.25)} for flow, of in point.metrics.items()}
        )
        for point in run.points
    )
    entries = [{"metric": metric, "verdict": "pass", "name": metric} for metric in EXPECTED]
    return dataclasses.replace(run, points=points, summary={**run.summary, "expectations": entries})


def headings(lines: list[str]) -> tuple[list[str], int]:
    """The headings of the table of points, also those in two lines, and the line of its first point."""
    at = next(place for place, line in enumerate(lines) if line.startswith("point"))
    above = {found.end(): found[0] for found in re.finditer(r"\S+", lines[at - 1])} if at else {}
    return [above.get(word.end(), "") + word[0] for word in re.finditer(r"\S+", lines[at])], at + 1


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_of_columns_that_do_not_fit_none_is_cut(run: Run, width: int) -> None:
    many = expecting(run)
    lines = sentences(shown(many, terminal=True, width=width, colours=None))
    rows = {line.split()[0]: line.split() for line in lines if line[:8] in {p.id[:8] for p in run.points}}
    assert all("…" not in line for line in lines[: len(run.points) + 2])
    first = run.points[0]
    assert rows[first.id[:8]][:6] == [first.id[:8], "dctcp_bug", "data", "10kB", "✗", "fail"]
    (left_out,) = [line for line in lines if line.startswith("not shown")]
    heads, _ = headings(lines)
    assert all((name in heads) != (name in left_out) for name in EXPECTED)
    assert heads[heads.index("verdict") + 1] in EXPECTED, "what the plan expects goes before the key metrics"


def test_80_columns_show_the_expected_metric_of_many_swept_parameters(run: Run) -> None:
    """Names of swept parameters stand in one line, what is the same everywhere in another."""
    names = ("congestion_control_of_all", "another_long_parameter", "third_long_parameter")
    points = tuple(
        dataclasses.replace(
            point,
            tuples=(*point.tuples, *(("hosts", name, f"{place}us") for name in names)),
            metrics={"bulk": {"throughput_bps": 1e9 + place, "stall_count": 0, "goodput_bps": 9e8}},
        )
        for place, point in enumerate(run.points)
    )
    summary = {**run.summary, "expectations": [{"name": "fast", "metric": "goodput_bps", "verdict": "pass"}]}
    run = dataclasses.replace(run, points=points, summary=summary)
    lines = sentences(shown(run, terminal=True, width=80, colours=None))
    swept, same, head = lines[:3]
    assert swept.startswith("swept   cc, htb_mark")
    assert "third_long_parameter" in swept
    assert same == "at each point: throughput 1 Gb/s, stalls 0"
    assert head.split() == ["point", "values", "verdict", "goodput_bps"]
    assert lines[3].split()[-2:] == ["900", "Mb/s"]


def many_swept(run: Run, **metrics: float) -> Run:
    """The points, with 20 parameters more that vary."""
    points = []
    for index, point in enumerate(run.points):
        more = tuple(("hosts", f"tcp_parameter_{at}", str(index % 2)) for at in range(20))
        values = {**point.metrics, "bulk": {**point.metrics.get("bulk", {}), **metrics}}
        points.append(dataclasses.replace(point, tuples=(*point.tuples, *more), metrics=values))
    return dataclasses.replace(run, points=tuple(points))


def test_a_plain_line_of_a_group_has_no_list_of_all_that_varies_in_it(run: Run) -> None:
    (line, *_) = [line for line in shown(many_swept(run), terminal=False).splitlines() if " points  " in line]
    assert line.split("  ")[2] == "cc=dctcp_bug, and 22 parameters with several values"


@pytest.mark.parametrize("width", [80, 120])
def test_requests_over_many_parameters_are_told_apart_by_their_points(run: Run, width: int) -> None:
    text = shown(many_swept(run, fct_all_p50_us=1000, fct_all_p99_us=2000), terminal=True, width=width, colours=None)
    (head,) = [line for line in text.splitlines() if "FCT p50" in line]
    assert head.split()[:3] == ["point", "flow", "requests"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(run: Run, width: int) -> None:
    """But for what is copied from it: the digest, and the place of the report.  No word is broken."""
    many = expecting(run)
    first = dataclasses.replace(many.points[0], reason="the rule reduction-once was broken by other, " * 5)
    many = dataclasses.replace(many, points=(first, *many.points[1:]))
    lines = shown(many, terminal=True, width=width, colours=None).splitlines()
    assert max(len(line) for line in lines if not line.startswith(("digest", "results"))) <= width
    wide, narrow = (sentences(shown(many, terminal=True, width=at, colours=None)) for at in (2000, width))
    starts = ("✗", "✓", "!", "–", "digest", "repeats")
    assert [line for line in narrow if line.startswith(starts)] == [line for line in wide if line.startswith(starts)]


def test_a_table_shows_losses_where_points_differ_in_them_alone(run: Run) -> None:
    def heads(*lost: int) -> list[str]:
        alike = {"throughput_bps": 1e9, "stall_count": 0, "retransmissions": 3, "packets_lost": 0}
        points = tuple(
            dataclasses.replace(point, metrics={"bulk": alike | {"packets_lost": count}})
            for point, count in zip(run.points, lost, strict=False)
        )
        text = shown(dataclasses.replace(run, points=points), terminal=True, colours=None)
        return headings(text.splitlines())[0]

    assert "lost" in heads(1, 2)
    assert "retrans." not in heads(1, 2)
    assert "lost" not in heads(2, 2)


def test_a_narrow_terminal_shows_all_expected_metrics_of_two_flows_before_any_other(run: Run) -> None:
    """A metric that nobody expects something of takes no place of one that does not fit."""
    wanted = ("jain", "goodput_second_half_bps", "latency_p99_us", "longest_name_of_a_metric_that_is_expected_bps")

    def of_flow(at: int) -> dict[str, float]:
        return {
            "throughput_bps": 2e7 + at,
            "stability_cv_10ms": 0.1 + at,
            **dict.fromkeys(wanted[1:], 12300000.0 + 1000000.0 * at),
        }

    points = tuple(
        dataclasses.replace(point, metrics={"*": {"jain": 0.9}, "early": of_flow(at), "late": of_flow(at + 1)})
        for at, point in enumerate(run.points)
    )

    def lines_of(metrics: tuple[str, ...]) -> list[str]:
        summary = {
            **run.summary,
            "expectations": [{"name": "a", "verdict": "pass", "metric": name} for name in metrics],
        }
        wide = dataclasses.replace(run, points=points, summary=summary)
        return sentences(shown(wide, terminal=True, width=90, colours=None))

    lines = lines_of(wanted[:3])
    assert "values  of early, late" in lines
    heads, at = headings(lines)
    assert heads[heads.index("jain") :][:3] == list(wanted[:3])
    assert "  0.9  12.3, 13.3 Mb/s  12.3, 13.3 s" in lines[at]
    lines = lines_of(wanted)
    (left_out,) = [line for line in lines if line.startswith("not shown")]
    assert wanted[3] in left_out
    assert "cv" in left_out


def test_repetitions_with_the_same_packets_are_no_samples(run: Run) -> None:
    digests = {"cubic": "aaa", "bbr": "bc", "reno": ["", ""]}
    entries = [{"tuples": [["hosts", "cc", cc]], "digest": digest} for cc, of_cc in digests.items() for digest in of_cc]
    repeated = dataclasses.replace(run, summary={**run.summary, "points": entries})
    (line,) = [text for text in shown(repeated, terminal=False).splitlines() if text.startswith("repeats")]
    assert line.startswith("repeats  2 of 7 points have the records of another repeat")


def test_an_expectation_that_passes_has_its_bound_and_what_was_found(run: Run, tmp_path: Path) -> None:
    """As on the run page: whether it is just met, or amply."""
    plan = "expect:\n  - {name: fast, metric: throughput_bps, min: 1mbit}\n"
    entry = {"name": "fast", "metric": "throughput_bps", "verdict": "pass", "detail": "2 of 2 points pass",
             "points": [point.id for point in run.points]}  # fmt: skip
    points = tuple(
        dataclasses.replace(point, metrics={"bulk": {"throughput_bps": 1e9 * place}})
        for place, point in enumerate(run.points, 1)
    )
    run = dataclasses.replace(run, path=tmp_path, points=points, summary={**run.summary, "expectations": [entry]})
    (tmp_path / "plan.yaml").write_text(f"topology: pair\nflows: {{bulk: sender -> receiver}}\ntuples: []\n{plan}")
    found = f"✓ pass  fast  2 of 2 points pass; throughput_bps ≥ 1mbit, found 1 Gb/s … {len(points)} Gb/s"
    (line,) = (text for text in shown(run, terminal=False).splitlines() if "fast" in text)
    assert line == found


def test_plain_output_has_every_metric(run: Run) -> None:
    first = shown(expecting(run), terminal=False).splitlines()[0]
    assert all(f"{name} 1.25" in first or f"{name} " in first for name in EXPECTED)
    assert "…" not in first
    assert "not shown" not in first


def test_csv_has_numbers_in_base_units(run: Run) -> None:
    out = io.StringIO()
    write_csv(run, out)
    first, *rows = csv.DictReader(io.StringIO(out.getvalue()))
    assert list(first)[:5] == ["point", "verdict", "ends.cc", "sender.htb_mark", "sender.htb_ecn_threshold_bytes"]
    assert (first["point"], first["verdict"], first["sender.htb_ecn_threshold_bytes"]) == (
        run.points[0].id, "fail", "10000",
    )  # fmt: skip
    assert float(first["throughput_bps"]) == one_number(run.points[0], "throughput_bps")
    assert len(rows) == len(run.points) - 1
    assert [row["throughput_bps"] for row in rows if row["verdict"] == "broken"] == [""]


def test_of_many_points_those_that_passed_are_listed_when_asked_for(run: Run) -> None:
    some = next(point for point in run.points if point.verdict == "pass")
    many = dataclasses.replace(run, points=(*run.points, *[some] * MANY))
    lines = shown(many, terminal=True, colours=None).splitlines()
    _, first = headings(lines)
    listed = [line.split()[0] for line in lines[first : first + 3]]
    assert listed == [p.id[:8] for p in run.points if p.verdict != "pass"]
    assert lines[first + 3] == f"not listed: {11 + MANY} points that passed; all are in testctl show {run.path}"
    every = shown(many, terminal=True, every=True, colours=None).splitlines()
    _, first = headings(every)
    ordered = sorted(many.points, key=lambda point: ("fail", "broken", "skip", "pass").index(point.verdict))
    assert [line.split()[0] for line in every[first : first + len(many.points)]] == [p.id[:8] for p in ordered]


def test_a_terminal_gets_colours(run: Run) -> None:
    text = shown(run, terminal=True)
    assert "\x1b[31m✗ fail" in text
    assert "\x1b[32m✓ pass" in text


def test_progress_in_plain_lines() -> None:
    out = io.StringIO()
    now = [100.0]
    with Progress(24, Console(file=out, width=80), clock=lambda: now[0]) as progress:
        progress.done("aa01 re-used", "pass", free=True)
        now[0] += 2
        progress.done("dctcp_bug [data]", "pass", 2.1)
        now[0] += 2
        progress.done("dctcp", "broken", 61.0)
        progress.count = 23
        progress.done("last", "fail")
    assert out.getvalue().splitlines() == [
        "[ 1/24] aa01 re-used … pass",
        "[ 2/24] dctcp_bug [data] … pass 2.1 s, 0:44 left",
        "[ 3/24] dctcp … broken 61 s, 0:42 left",
        "[24/24] last … fail",
    ]


def test_progress_in_a_terminal_keeps_the_lines_and_moves_a_bar() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with Progress(2, console) as progress:
        progress.done("one", "pass", 0.5)
        progress.done("two", "pass", 0.5)
    assert "[1/2] one … " in out.getvalue()
    assert "2/2" in out.getvalue()


def test_a_report_that_is_drawn_says_so_at_once_and_moves_a_bar() -> None:
    plain, screen = io.StringIO(), io.StringIO()
    shown = Drawing(2, Console(file=plain))
    assert plain.getvalue() == "drawing the report: 2 points\n"
    bar = Drawing(2, Console(file=screen, force_terminal=True, width=80, _environ={}))  # whatever TERM is
    for drawing in (shown, bar):
        for point in ("a", "b"):
            drawing.drawn(point)
    assert plain.getvalue() == "drawing the report: 2 points\n", "no bar outside of a terminal"
    assert "2/2" in screen.getvalue()
    Drawing(0, Console(file=plain))
    assert plain.getvalue().count("drawing") == 1


def test_names_of_a_foreign_run_are_text(run: Run) -> None:
    points = tuple(
        dataclasses.replace(
            point,
            tuples=(("[/e]", "[/p]", f"[/v]{place}"),),
            metrics={"[/f]": {"[/m]": 1.0, "throughput_bps": 1e6 * place}},
        )
        for place, point in enumerate(run.points[:3])
    )
    foreign = dataclasses.replace(run, points=points)
    text = shown(foreign, terminal=True, width=200)
    assert all(name in text for name in ("[/p]", "[/v]0"))
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=200)
    print_point(foreign, points[0], console)
    assert all(name in out.getvalue() for name in ("[/e]", "[/p]", "[/v]0", "[/f]", "[/m]"))
    print_plots(sweeps_of_run(foreign), console)
    assert out.getvalue().count("[/v]0") > 1


def test_a_report_that_is_interrupted_gives_the_terminal_its_cursor_back() -> None:
    code = (
        "from rich.console import Console; from testctl.report import Drawing\n"
        "Drawing(2, Console(force_terminal=True, _environ={})).drawn('a')\n"
        "raise KeyboardInterrupt"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout
    assert "drawing the report: 2 points" in printed
    assert printed.rindex("\x1b[?25h") > printed.rindex("\x1b[?25l")


def test_a_point_of_many_flows_has_one_number(run: Run) -> None:
    flows = {"a": {"stall_count": 2, "latency_p99_us": 5.0}, "b": {"stall_count": 1, "latency_p99_us": 9.0}}
    wide = {"jain": 0.5, "total_throughput_bps": 9e9, "total_saturation": 0.9}
    rates = {name: values | {"throughput_bps": 6e9, "saturation": 0.6} for name, values in flows.items()}
    point = dataclasses.replace(run.points[0], metrics={**rates, "*": wide})
    assert one_number(point, "stall_count") == 3
    assert one_number(point, "latency_p99_us") == 9
    assert (one_number(point, "throughput_bps"), one_number(point, "saturation")) == (9e9, 0.9)
    assert one_number(point, "jain") == 0.5
    assert one_number(point, "window_segments") is None
    lacking = dataclasses.replace(point, metrics={**flows, "*": wide, "c": {"latency_p99_us": None}})
    assert one_number(lacking, "stall_count") is None  # the sum of two of three is no number of the point
    assert one_number(lacking, "latency_p99_us") is None


def test_a_metric_that_the_plan_expects_something_of_is_a_column(run: Run) -> None:
    """Of one flow one number; of several, what each has; in the terminal, the report and the page of runs."""
    wanted = [
        {"name": "fair", "verdict": "pass", "metric": metric} for metric in ("jain", "goodput_bps", "throughput_bps")
    ]
    point = dataclasses.replace(
        run.points[0],
        metrics={
            "*": {"jain": 0.875, "total_throughput_bps": 9e9},
            "a": {"throughput_bps": 7e9, "goodput_bps": 6e9},
            "b": {"throughput_bps": 3e9, "goodput_bps": 2e9},
        },
    )
    fair = dataclasses.replace(run, points=(point,), summary={**run.summary, "expectations": wanted})
    lines = shown(fair, terminal=False).splitlines()
    for words in ("throughput", "jain", "goodput_bps", "throughput_bps, each"):
        assert words in lines[0]
    for words in ("9 Gb/s", "0.875", "a 6, b 2 Gb/s", "a 7, b 3 Gb/s"):
        assert words in lines[0]
    page = run_page(Found(fair.path, fair.summary, fair.points), "")
    assert [0.875, "0.875"] in page["points"][0]["cells"]
    alone = dataclasses.replace(fair, points=(dataclasses.replace(point, metrics={"a": {"throughput_bps": 7e9}}),))
    assert "each" not in shown(alone, terminal=False).splitlines()[0]
