# SPDX-License-Identifier: Apache-2.0
"""`figures` of a plan: what is read, and what is refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from testctl.plan import FigureSpec, Plan, figures_of, load_plan
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]
SWEPT = "tuples: [[hosts, cc, [cubic, reno]], [hosts, tso, on]]\n"
GOOD = """\
figures:
  - title: Figure 2
    kind: sequence
    bin: 1ms
    flow: bulk
    when: {hosts.cc: [cubic, reno], hosts.tso: on}
    from: 100ms
    to: 1s
  - {title: Figure 3}
"""
READ = (
    FigureSpec(
        "Figure 2", "sequence", 10**6, "bulk", {"hosts.cc": ("cubic", "reno"), "hosts.tso": ("on",)}, 10**8, 10**9
    ),
    FigureSpec("Figure 3", "throughput"),
)


def test_a_figure_is_read_with_its_units(plan_of: Load) -> None:
    assert plan_of(SWEPT + GOOD).figures == READ
    assert plan_of(SWEPT).figures == ()


def test_the_plan_of_a_run_is_read_alike(plan_of: Load) -> None:
    plan = plan_of(SWEPT + GOOD)
    assert figures_of(plan.text, "plan.yaml") == READ
    assert figures_of("", "plan.yaml") == ()
    with pytest.raises(PlanError, match=r"plan\.yaml:1:18: figure 1: kind: want one of"):
        figures_of("figures: [{kind: pie, title: a}]", "plan.yaml")


# What follows "figures:" in line 4, and the expected error.
WRONG = {
    "{}": "4:10: figures: want a list of at most 20 figures; got an empty mapping",
    "[x]": "4:11: figure 1: want a mapping of title, kind, bin, flow, connection, when, from, to, metric, x, by, "
    "facet; got x",
    "[{title: a, colour: 1}]": "4:22: figure 1: no field named colour; want one of title, kind, bin",
    "[{}]": "4:11: figure 1: want a field title; got none",
    "[{title: [a]}]": "4:19: figure 1: title: want text; got a list",
    "[{title: a, kind: thruput}]": "4:28: figure 1: kind: want one of throughput, connections, cwnd, rtt, "
    "queue, sequence, time_sequence, response, slowdown, fct, metric, cdf, box, heatmap; got thruput",
    "[{title: a}, {title: a, bin: 10}]": "4:39: figure 2: bin: want a time with its unit",
    "[{title: a, bin: 1ns}]": "4:27: figure 1: bin: want at least 1us; got 1ns",
    "[{title: a, from: 2s, to: 1s}]": "4:36: figure 1: to: want a time after `from`; got 1s",
    "[{title: a, connection: 64}]": "4:34: figure 1: connection: want a whole number from 0 to 63; got 64",
    "[{title: a, to: soon}]": "4:26: figure 1: to: want a time with its unit",
    "[{title: a, flow: bulc}]": "4:28: figure 1: no flow named bulc; did you mean bulk?",
    "[{title: a, when: [x]}]": "4:28: figure 1: when: want a mapping such as {ends.cc: cubic}; got a list",
    "[{title: a, when: {cc: 1}}]": "4:29: figure 1: when: want ENTITY.PARAM; got cc; did you mean hosts.cc?",
    "[{title: a, when: {hosts.nonsense: 1}}]": "4:29: figure 1: when: group hosts: its host sender has "
    "no parameter named nonsense",
    "[{title: a, when: {hosts.cc: bbr}}]": "4:39: figure 1: when, hosts.cc: want one of its values cubic, reno; "
    "got bbr",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place(plan_of: Load, text: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(f"{SWEPT}figures: {text}")
    assert f"<plan>:{WRONG[text]}" in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(plan_of: Load) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(SWEPT + "figures: [{title: a, kind: pie}, {title: b, bin: 1ns}]\nexpect: [{metric: nonsense, min: 1}]")
    assert len(str(caught.value).splitlines()) == 3


def test_a_figure_that_no_point_meets_is_refused_but_where_set_took_it_away(plan_of: Load) -> None:
    text = SWEPT + "exclude: [{hosts.cc: reno}]\nfigures: [{title: a, when: {hosts.cc: reno}}]"
    with pytest.raises(PlanError, match=r"5:11: figure 1: no point of the plan meets its `when`"):
        plan_of(text)
    assert len(plan_of(SWEPT + GOOD, ["hosts.cc=bbr"]).figures) == 2


REQUESTS = "[bulk, requests, 2], [bulk, sizes, 2kB], [bulk, arrival_rate, 9]"


@pytest.mark.parametrize(
    ("figure", "without", "with_it", "why"),
    [
        ("sequence, connection: 1", "[bulk, bytes, 1MB]", "[bulk, parallel, 2]", "connection: want one"),
        ("slowdown", "[bulk, bytes, 1MB]", REQUESTS, "want a flow with `requests` for kind slowdown; got none"),
        ("fct, flow: bulk", "[bulk, bytes, 1MB]", REQUESTS, "want a flow with `requests` for kind fct; got bulk"),
    ],
)
def test_a_figure_of_what_its_flow_has_not_got_is_refused(figure: str, without: str, with_it: str, why: str) -> None:
    text = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [TUPLES]\nfigures: [{title: a, kind: KIND}]\n"
    text = text.replace("KIND", figure)
    with pytest.raises(PlanError, match=re.escape(f"4:11: figure 1: {why}")):
        load_plan(text.replace("TUPLES", without))
    assert len(load_plan(text.replace("TUPLES", with_it)).figures) == 1


def test_a_wrong_kind_is_the_only_problem_of_its_figure(plan_of: Load) -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(f"{SWEPT}figures: [{{kind: metrics, metric: jain, x: hosts.cc}}]")
    assert str(caught.value).count("figure 1") == 1
