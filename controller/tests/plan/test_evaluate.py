# SPDX-License-Identifier: Apache-2.0
"""Results against expectations: pass, fail, invalid, skip and broken stay apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from testctl.plan import Measured, Plan, evaluate, load_plan, verdict_alone

Load = Callable[..., Plan]
Results = dict[str, Measured]
TWO = "tuples: [[hosts, cc, [a, b]]]\n"
FAST = {"throughput_bps": 2e9}


def results(plan: Plan, *values: Any, metric: str = "throughput_bps", flow: str = "bulk") -> Results:
    """One result a point; a text that is a verdict makes the point that."""
    found: Results = {}
    for point, value in zip(plan.points, values, strict=True):
        odd = value in ("skip", "broken", "invalid")
        metrics = {} if odd else {flow: {metric: value}}
        found[point.id] = Measured(value if odd else "pass", "", metrics)
    return found


def judged(plan: Plan, found: Results) -> tuple[str, str]:
    """Verdicts of the points, and of the expectations, by their first letters."""
    points, expectations = evaluate(plan, found)
    return "".join(p.verdict[0] for p in points), "".join(e.verdict[0] for e in expectations)


@pytest.mark.parametrize(
    ("expect", "a", "b", "want"),
    [
        ("min: 1gbit", 2e9, 5e8, ("pf", "f")),
        ("min: 1gbit, max: 2gbit", 1e9, 2e9, ("pp", "p")),
        ("max: 1.5", 1.5, 1.6, ("pf", "f")),
        ("equals: 2, tolerance: 0.5", 1.5, 2.6, ("pf", "f")),
        ("equals: 1gbit, tolerance: 100mbit", 1.1e9, 0.8e9, ("pf", "f")),
        ("equals: 200, tolerance: 5%", 210, 211, ("pf", "f")),
        ("equals: 3", 3, 3.0, ("pp", "p")),
        ("min: 1", math.nan, 2, ("ip", "i")),
        ("min: 1", None, 2, ("ip", "i")),
        ("min: 1", None, 0, ("if", "f")),
        ("min: 1", "text", 2, ("fp", "f")),
        ("min: 1", math.inf, 2, ("pp", "p")),
        ("min: 1", "skip", 2, ("sp", "p")),
        ("min: 1", "broken", 2, ("bp", "i")),
        ("min: 1", "invalid", 0, ("if", "f")),
        ("min: 1", "skip", "skip", ("ss", "s")),
        ("min: 1, when: {hosts.cc: b}", 0, 2, ("pp", "p")),
        ("min: 1, quantifier: some", 0, 2, ("pp", "p")),
        ("min: 1, quantifier: some", 0, 0, ("pp", "f")),
        ("min: 1, quantifier: some", 0, None, ("pp", "i")),
        ("min: 1, quantifier: some", "skip", 0, ("sp", "f")),
        ("at_least: 5, than: {hosts.cc: a}", 1, 5, ("pp", "p")),
        ("at_least: 5, than: {hosts.cc: a}", 1, 4.9, ("pf", "f")),
        ("at_most: 0.5, than: {hosts.cc: a}", 10, 5, ("pp", "p")),
        ("at_most: 0.5, than: {hosts.cc: a}", 10, 6, ("pf", "f")),
        ("at_least: 5, than: {hosts.cc: a}", None, 5, ("pi", "i")),
        ("at_least: 5, than: {hosts.cc: a}", "broken", 5, ("bi", "i")),
        ("at_least: 5, than: {hosts.cc: a}", "text", 5, ("pi", "i")),
    ],
)  # fmt: skip
def test_verdicts(plan_of: Load, expect: str, a: Any, b: Any, want: tuple[str, str]) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, {expect}}}]")
    assert judged(plan, results(plan, a, b)) == want


@pytest.mark.parametrize(
    ("expect", "a", "want"),
    [
        ("min: 1", 2, "pass"),
        ("min: 1", 0, "fail"),
        ("min: 1", None, "invalid"),
        ("min: 1", "broken", "broken"),
        ("min: 1, when: {hosts.cc: b}", 0, "pass"),
        ("min: 1, quantifier: some", 0, "pass"),
        ("at_least: 5, than: {hosts.cc: b}", 9, None),
        ("at_least: 5, than: {hosts.cc: b}", "invalid", "invalid"),
        ("at_least: 5, than: {hosts.cc: a}", 9, "pass"),
        ("min: 1}, {metric: throughput_bps, at_least: 5, than: {hosts.cc: b}", 0, "fail"),
        ("min: 1}, {metric: throughput_bps, at_least: 5, than: {hosts.cc: b}", 2, None),
        ("min: 1}, {name: x, metric: jain, min: 1}, {name: y, metric: jain, at_most: 5, than: {hosts.cc: b}", 2,
         None),
    ],
)  # fmt: skip
def test_a_point_is_called_pass_only_when_no_other_can_change_it(
    plan_of: Load, expect: str, a: Any, want: str | None
) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, {expect}}}]")
    first = plan.points[0]
    alone = verdict_alone(plan, first, results(plan, a, 1)[first.id])
    assert (alone.verdict if alone else None) == want
    assert want != "fail" or (alone is not None and "want at least 1 bit/s; got 0" in alone.reason)


MANY = "tuples: [[hosts, cc, [a, b, c]], [hosts, gro_flush, [1us, 2us, 3us]]]\n"


def test_an_expectation_says_how_many_fail_what_they_share_and_the_worst(plan_of: Load) -> None:
    plan = plan_of(MANY + "expect: [{name: fast, metric: throughput_bps, min: 100}]")
    (said,) = evaluate(plan, results(plan, 200, 50, 200, 200, 3, 200, 20, 40, 90))[1]
    assert said.detail == (
        "5 of 9 points fail: all 3 with hosts.cc=c; of the other 6, all 2 with hosts.gro_flush=2us; "
        "worst: throughput_bps of bulk: want at least 100 bit/s; got 3 bit/s (hosts.cc=b hosts.gro_flush=2us); "
        "also hosts.cc=c hosts.gro_flush=1us, hosts.cc=c hosts.gro_flush=2us, hosts.cc=a hosts.gro_flush=2us, "
        "hosts.cc=c hosts.gro_flush=3us"
    )
    assert len(said.points) == 5
    (said,) = evaluate(plan, results(plan, *[200] * 9))[1]
    assert said.detail == "9 of 9 points pass"
    (said,) = evaluate(plan, results(plan, *[50] * 9))[1]
    assert said.detail.startswith(
        "9 of 9 points fail; worst: throughput_bps of bulk: want at least 100 bit/s; got 50 bit/s ("
    )
    assert said.detail.endswith(" and 4 more")
    (said,) = evaluate(plan, results(plan, *["skip"] * 9))[1]
    assert said.detail == "9 of 9 points were skipped"


def test_what_can_not_be_judged_is_said_once_with_its_points(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{name: fast, metric: throughput_bps, min: 1}]")
    (said,) = evaluate(plan, results(plan, None, None))[1]
    assert said.detail == (
        "2 of 2 points can't be judged; throughput_bps of bulk has no value (hosts.cc=a); also hosts.cc=b"
    )


def test_the_reason_says_when_a_metric_has_no_value(plan_of: Load) -> None:
    plan = plan_of("tuples: [[hosts, cc, a]]\nexpect: [{metric: rtt_p99_us, min: 1}]")
    (verdict,) = evaluate(plan, results(plan, None, metric="rtt_p99_us"))[0]
    assert (verdict.verdict, verdict.reason) == (
        "invalid", "rtt_p99_us 1: rtt_p99_us of bulk has no value: NaN without any",
    )  # fmt: skip


def test_text_metrics(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: stall_cause, equals: delayed_ack}]")
    assert judged(plan, results(plan, "delayed_ack", "timeout", metric="stall_cause")) == ("pf", "f")


def test_units_are_those_of_the_metric(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: rtt_p99_us, max: 1.5ms}]")
    assert plan.expectations[0].bounds.most == 1500
    assert plan_of(TWO + "expect: [{metric: rtt_p99_us, max: 10ns}]").expectations[0].bounds.most == 0.01
    assert plan_of(TWO + "expect: [{metric: any, max: 10us}]", metrics=None).expectations[0].bounds.most == 10_000


def test_point_wide_metrics(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: jain, min: 0.9}]")
    assert judged(plan, results(plan, 0.95, 0.5, metric="jain", flow="*")) == ("pf", "f")


def test_every_flow_unless_one_is_named(load: Load) -> None:
    head = "topology: pair\nflows: {a: sender -> receiver, b: receiver -> sender}\ntuples: [[hosts, cc, x]]\n"
    both = {"a": {"jain": 1}, "b": {"jain": 0}}
    for flow, want in (("", "f"), (", flow: a", "p"), (", flow: b", "f"), (", flow: flows", "f"), (", flow: [a]", "p")):
        plan = load(head + f"expect: [{{metric: jain, min: 1{flow}}}]")
        assert judged(plan, {plan.points[0].id: Measured("pass", "", both)})[1] == want


def test_reasons_say_wanted_and_got(plan_of: Load) -> None:
    plan = plan_of(
        TWO
        + """\
expect:
  - {name: fast, metric: throughput_bps, min: 1gbit}
  - {name: faster, metric: throughput_bps, at_least: 2, than: {hosts.cc: a}, when: {hosts.cc: b}}
"""
    )
    a, b = (point.id for point in plan.points)
    points, expectations = evaluate(plan, results(plan, 2e9, 5e8))
    assert points[1].point == b
    assert points[1].reason == (
        "fast: throughput_bps of bulk: want at least 1 Gb/s; got 500 Mb/s; "
        f"faster: throughput_bps of bulk: want at least 2 times 2 Gb/s at point {a}; got 500 Mb/s"
    )
    assert expectations[0].to_json() == {
        "name": "fast",
        "verdict": "fail",
        "detail": "1 of 2 points fail; throughput_bps of bulk: want at least 1 Gb/s; got 500 Mb/s (hosts.cc=b)",
        "bounds": {"min": 1_000_000_000},
        "points": [b],
        "at": "<plan>:5:5",
        "metric": "throughput_bps",
    }
    assert expectations[0].points == (b,)


def test_a_missing_result_is_broken(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: jain, min: 1}]")
    points, expectations = evaluate(plan, {})
    assert [(p.verdict, p.reason) for p in points] == [("broken", "it has no result")] * 2
    assert expectations[0].verdict == "invalid"


def test_what_a_point_was_before_stays(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: jain, min: 1}]")
    found = results(plan, 1, 1, metric="jain")
    found[plan.points[0].id] = Measured("invalid", "the clocks differ", found[plan.points[0].id].metrics)
    points, _ = evaluate(plan, found)
    assert (points[0].verdict, points[0].reason) == ("invalid", "the clocks differ")


def test_repeats_are_compared_with_their_own_kind(plan_of: Load) -> None:
    plan = plan_of(TWO + "repeat: 2\nexpect: [{metric: jain, at_least: 2, than: {hosts.cc: a}}]")
    assert judged(plan, results(plan, 1, 10, 2, 20, metric="jain")) == ("pppp", "p")
    assert judged(plan, results(plan, 10, 1, 2, 20, metric="jain")) == ("ppfp", "f")


FAILS = TWO + "expect: [{name: dies, fails_with: ETIMEDOUT, when: {hosts.cc: b}}, {metric: throughput_bps, min: 1}]"


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ("none", "ETIMEDOUT", ("pp", "pp")),
        ("none", "incomplete, ETIMEDOUT", ("pp", "pp")),
        ("none", "none", ("pf", "fp")),
        ("none", "ECONNRESET", ("pf", "fp")),
        ("ETIMEDOUT", "ETIMEDOUT", ("fp", "pp")),
    ],
)
def test_a_connection_that_fails(plan_of: Load, a: str, b: str, want: tuple[str, str]) -> None:
    """It makes its point fail where no expectation is about how it fails; other metrics are judged as always."""
    plan = plan_of(FAILS)
    found = {
        point.id: Measured("pass", "" if how == "none" else f"flow bulk: {how}", {"bulk": {**FAST, "failure": how}})
        for point, how in zip(plan.points, (a, b), strict=True)
    }
    assert judged(plan, found) == want
    alone = [verdict_alone(plan, point, found[point.id]) for point in plan.points]
    assert "".join(one.verdict[0] for one in alone if one) == want[0]
    assert [one.reason for one in evaluate(plan, found)[0]] == [
        "flow bulk: ETIMEDOUT" if a != "none" else "",
        "" if want[0][1] == "p" else f"dies: failure of bulk: want ETIMEDOUT; got {b}",
    ]


BESIDE = """\
topology: pair
flows: {bulk: sender -> receiver, other: sender -> receiver}
tuples: [[hosts, cc, [a, b]]]
expect: [{name: half, metric: throughput_bps, at_least: 0.5, than: {flow: other%s}}]
"""


@pytest.mark.parametrize(
    ("bulk", "other", "want", "reason"),
    [
        (5, 10, "p", ""),
        (4, 10, "f", "half: throughput_bps of bulk: want at least 0.5 times 10 bit/s of other; got 4 bit/s"),
        (5, None, "i", "half: throughput_bps of other has no value at point {}, to compare with"),
    ],
)
def test_another_flow_of_the_point(bulk: int, other: int | None, want: str, reason: str) -> None:
    plan = load_plan((BESIDE % "").encode())
    flows = {"bulk": {"throughput_bps": bulk}, "other": {"throughput_bps": other}}
    points, (half,) = evaluate(plan, {point.id: Measured("pass", "", flows) for point in plan.points})
    assert [point.verdict[0] for point in points] == [want] * 2
    assert points[0].reason == reason.format(plan.points[0].id)
    assert half.verdict[0] == want


def test_another_flow_of_another_point() -> None:
    plan = load_plan((BESIDE % ", hosts.cc: a").encode())
    first, second = plan.points

    def found(bulk: int, other: int) -> Measured:
        return Measured("pass", "", {"bulk": {"throughput_bps": bulk}, "other": {"throughput_bps": other}})

    points, _ = evaluate(plan, {first.id: found(1, 10), second.id: found(4, 2)})
    assert [point.verdict for point in points] == ["pass", "fail"]
    assert points[1].reason.endswith(f"want at least 0.5 times 10 bit/s of other and at point {first.id}; got 4 bit/s")
