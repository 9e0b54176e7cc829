# SPDX-License-Identifier: Apache-2.0
"""Figures of the kinds metric, cdf, box and heatmap: what is read, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testctl.plan import FigureSpec, Plan, figures_of
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]
MANY = ", ".join(f"{n}us" for n in range(1, 10))
TOO_MANY = ", ".join(f"{n}us" for n in range(1, 62))
TUPLES = f"""\
tuples: [[hosts, cc, [cubic, reno]], [switch, delay, [1ms, 10ms]], [hosts, tso, on], [hosts, gro_flush, [{MANY}]]]
"""
GOOD = """\
figures:
  - {kind: metric, metric: jain, x: switch.delay, by: hosts.cc, facet: hosts.gro_flush, when: {hosts.gro_flush: [1us, 2us]}}
  - {kind: cdf, metric: throughput_bps, by: hosts.cc, flow: bulk}
  - {kind: box, title: Mine, metric: rtt_p99_us, x: hosts.gro_flush}
  - {kind: heatmap, metric: throughput_bps, flow: bulk, x: hosts.cc, by: hosts.gro_flush, facet: switch.delay}
"""  # noqa: E501
READ = (
    FigureSpec(
        "jain over switch.delay by hosts.cc for each hosts.gro_flush", "metric", metric="jain", x="switch.delay",
        by="hosts.cc", facet="hosts.gro_flush", when={"hosts.gro_flush": ("1us", "2us")},
    ),
    FigureSpec("throughput_bps by hosts.cc", "cdf", metric="throughput_bps", by="hosts.cc", flow="bulk"),
    FigureSpec("Mine", "box", metric="rtt_p99_us", x="hosts.gro_flush"),
    FigureSpec(
        "throughput_bps over hosts.cc by hosts.gro_flush for each switch.delay", "heatmap", metric="throughput_bps",
        flow="bulk", x="hosts.cc", by="hosts.gro_flush", facet="switch.delay",
    ),
)  # fmt: skip


def test_they_are_read_and_named_after_what_they_show(plan_of: Load) -> None:
    plan = plan_of(TUPLES + GOOD)
    assert plan.figures == READ
    assert figures_of(plan.text, "plan.yaml") == READ


# What follows "figures:" in line 4, and the expected error.
WRONG = {
    "[{kind: metric, x: hosts.cc}]": "4:11: figure 1: want a field metric; got none",
    "[{kind: metric, metric: jain}]": "4:11: figure 1: want a field x; got none",
    "[{kind: box, metric: jain}]": "4:11: figure 1: want a field x; got none",
    "[{kind: heatmap, x: hosts.cc, by: switch.delay}]": "4:11: figure 1: want a field metric; got none",
    "[{kind: heatmap, metric: jain, by: hosts.cc}]": "4:11: figure 1: want a field x; got none",
    "[{kind: heatmap, metric: jain, x: hosts.cc}]": "4:11: figure 1: want a field by; got none",
    "[{kind: heatmap, metric: jain, x: hosts.cc, by: hosts.cc}]": "4:58: figure 1: by: want another parameter than "
    "x; got hosts.cc",
    "[{kind: cdf}]": "4:11: figure 1: want a field metric; got none",
    "[{kind: metric, metric: jian, x: hosts.cc}]": "4:34: figure 1: no metric named jian; did you mean jain?",
    "[{kind: metric, metric: stall_cause, x: hosts.cc}]": "4:34: figure 1: metric: want one that is a number; "
    "got stall_cause, which is text",
    "[{kind: metric, metric: [jain], x: hosts.cc}]": "4:34: figure 1: metric: want text; got a list",
    "[{kind: metric, metric: jain, x: cc}]": "4:43: figure 1: x: want ENTITY.PARAM; got cc",
    "[{kind: metric, metric: jain, x: hosts.mtu}]": "4:43: figure 1: x: no tuple sets hosts.mtu",
    "[{kind: metric, metric: jain, x: hosts.tso}]": "4:43: figure 1: x: want a parameter with several values; "
    "got hosts.tso, which is always on",
    "[{kind: metric, metric: jain, x: hosts.cc, when: {hosts.cc: reno}}]": "4:43: figure 1: x: want a parameter "
    "with several values; got hosts.cc, which is always reno",
    "[{kind: metric, metric: jain, x: hosts.cc, by: hosts.cc}]": "4:57: figure 1: by: want another parameter than "
    "x; got hosts.cc",
    "[{kind: metric, metric: jain, x: hosts.cc, by: hosts.gro_flush}]": "4:57: figure 1: by: want a parameter of at "
    "most 8 values; got hosts.gro_flush with 9",
    "[{kind: metric, metric: jain, x: hosts.cc, bin: 1ms}]": "4:58: figure 1: bin: want it in a figure of kind "
    "throughput, connections, cwnd, rtt, queue, sequence, time_sequence; got kind metric",
    "[{kind: cdf, metric: jain, x: hosts.cc}]": "4:40: figure 1: x: want it in a figure of kind metric, box, heatmap; "
    "got kind cdf",
    "[{title: a, by: hosts.cc}]": "4:26: figure 1: by: want it in a figure of kind slowdown, fct, metric, cdf, box, "
    "heatmap; got kind throughput",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place(plan_of: Load, text: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(f"{TUPLES}figures: {text}")
    assert f"<plan>:{WRONG[text]}" in str(caught.value)


def test_a_sweep_that_set_took_away_is_no_error(plan_of: Load) -> None:
    figure = "figures: [{kind: metric, metric: jain, x: switch.delay, by: hosts.cc}]"
    assert plan_of(TUPLES + figure, ["switch.delay=5ms"]).figures[0].x == "switch.delay"


def test_more_values_than_an_axis_can_show_are_refused(plan_of: Load) -> None:
    text = f"tuples: [[switch, delay, [{TOO_MANY}]]]\nfigures: [{{kind: box, metric: jain, x: switch.delay}}]"
    with pytest.raises(PlanError, match=r"x: want a parameter of at most 60 values; got switch.delay with 61"):
        plan_of(text)
    rows = text.replace("{kind: box, metric: jain, x", "{kind: heatmap, metric: jain, x: hosts.cc, by")
    with pytest.raises(PlanError, match=r"by: want a parameter of at most 60 values; got switch.delay with 61"):
        plan_of(rows.replace("tuples: [", "tuples: [[hosts, cc, [cubic, reno]], "))
