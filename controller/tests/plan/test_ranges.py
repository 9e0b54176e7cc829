# SPDX-License-Identifier: Apache-2.0
"""Ranges as values, and points drawn from them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.plan import Plan, coverage, load_plan, overview
from testctl.plan.prioritise import gaps
from testctl.plan.ranges import OF_RANGE, OF_STEP, Range
from testctl_agent.params.flow.workload import Number
from testctl_agent.params.types import InSteps, OrNone
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.types import Amount, Int
from testctl_agent.spec.units import Bytes, Duration, Rate

from controller.tests.support.refusal import refusal

HEAD = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, duration, 1s]\n"
WIDE = "{from: 1ms, to: 100ms, scale: log}"
SAMPLE = f"{HEAD}  - [switch, delay, {WIDE}]\n  - [switch:receiver, rate, {{from: 10mbit, to: 20mbit}}]\n"
LISTS = "  - [hosts, cc, [cubic, reno, bbr]]\n  - [switch:receiver, buffer, [0.5 bdp, 2 bdp]]\n"


def loaded(text: str, *overrides: str) -> Plan:
    return load_plan(text.encode(), overrides=overrides)


@pytest.mark.parametrize(
    ("kind", "first", "last", "steps", "log", "texts"),
    [
        (Amount(Duration), "1ms", "200ms", 6, True, "1ms 2.9ms 8.3ms 24ms 69ms 200ms"),
        (Amount(Duration), "1ms", "9ms", 3, False, "1ms 5ms 9ms"),
        (Amount(Duration), "0ms", "1s", 5, False, "0ms 250ms 500ms 750ms 1s"),
        (Amount(Duration), "10ms", "11ms", 5, False, "10ms 10.25ms 10.5ms 10.75ms 11ms"),
        (Amount(Duration), "1ns", "10ns", 4, False, "1ns 4ns 7ns 10ns"),
        (Amount(Duration), "1ns", "4ns", 3, False, "1ns 2ns 4ns"),
        (Amount(Rate), "1mbit", "1gbit", 4, True, "1mbit 10mbit 100mbit 1gbit"),
        (Amount(Rate), "1.5 Mbit/s", "3 Mbit/s", 3, False, "1.5 Mbit/s 2.25Mbit/s 3 Mbit/s"),
        (Amount(Bytes), "1000", "3000", 3, False, "1000 2000 3000"),
        (Amount(Bytes), "1KiB", "4KiB", 4, False, "1KiB 2KiB 3KiB 4KiB"),
        (InSteps(Duration, step=10**9), "1s", "4s", 3, False, "1s 2s 4s"),
        (Int(1, 1000), "1", "64", 4, True, "1 4 16 64"),
        (Int(-31, 31), "-20", "20", 5, False, "-20 -10 0 10 20"),
        (OrNone(Int(1, 1000)), "1", "3", 2, False, "1 3"),
        (Number(10, "0.6"), "0.1", "0.9", 5, False, "0.1 0.3 0.5 0.7 0.9"),
        (Number(10, "0.6", percent=True), "10%", "90%", 3, False, "10% 50% 90%"),
    ],
)
def test_values(kind: Int, first: str, last: str, steps: int, log: bool, texts: str) -> None:
    found = Range(first, last, kind, log, steps).texts()
    assert found == (texts.split() if " M" not in texts else ["1.5 Mbit/s", "2.25Mbit/s", "3 Mbit/s"])
    assert all(kind.parse(text) is not None for text in found)


@given(
    st.integers(1, 10**12), st.integers(2, 10**6), st.integers(2, 40), st.booleans(), st.sampled_from(["ns", "us", "s"])
)
def test_a_value_is_near_and_is_what_is_set(low: int, width: int, steps: int, log: bool, unit: str) -> None:
    kind = Amount(Duration, most=2**61)
    size = Duration.units[unit]
    whole = Range(f"{low}{unit}", f"{low + width}{unit}", kind, log, steps)
    numbers = [int(kind.parse(text)) for text in whole.texts()]  # each is a whole number of ns
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (low * size, (low + width) * size)
    exact = [whole.at(Fraction(step, steps - 1)) for step in range(steps)]
    for number, value in zip(numbers, exact, strict=True):
        assert abs(number - value) <= max((exact[-1] - exact[0]) / OF_STEP, 1)
    for share in (Fraction(0), Fraction(1, 3), Fraction(2**30 - 1, 2**30)):
        drawn = int(kind.parse(whole.drawn(share)))
        assert low * size <= drawn <= (low + width) * size
        assert abs(drawn - whole.at(share)) <= max(
            Fraction(width * size * (1 if not log else low + width), OF_RANGE), 1
        )


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("{from: 1ms}", "5:21: switch switch, delay: want a field to; got none"),
        ("{from: 1ms, to: 9ms}", "5:21: switch.delay: want steps, so many values from 2 to 1000, or design: "
         "{sample: 200}; "
         "got a range without"),
        ("{from: 1ms, to: 9ms, step: 2}", "5:42: switch switch, delay: no field named step; did you mean steps?"),
        ("{from: 1ms, to: 9ms, steps: 1}", "5:49: switch switch, delay: steps: want a whole number from 2 to 1000; "
         "got 1"),
        ("{from: 1ms, to: 9ms, steps: 2, scale: exp}", "5:59: switch switch, delay: scale: want one of linear, log; "
         "got exp"),
        ("{from: 9ms, to: 9ms, steps: 2}", "5:37: switch switch, delay: to: want more than from, which is 9ms; got "
         "9ms"),
        ("{from: 0ms, to: 9ms, steps: 2, scale: log}", "5:28: switch switch, delay: from: want more than 0 on a "
         "scale log; "
         "got 0ms"),
        ("{from: 1ns, to: 3ns, steps: 9}", "5:49: switch switch, delay: steps: want fewer values, as two of them "
         "are rounded "
         "to 1ns; got 9"),
        ("{from: 1kB, to: 9ms, steps: 2}", "5:28: switch switch, delay: from: want a time with its unit, such as "
         "10s, 200ms, "
         "20us or 5ns, from 0ns to 1000s; or a schedule such as '20ms; 2s 50ms; 4s 20ms'; got '1kB'"),
        ("{from: [1ms], to: 9ms, steps: 2}", "5:28: switch switch, delay: from: want a time with its unit, such as "
         "10s, "
         "200ms, 20us or 5ns, from 0ns to 1000s; or a schedule such as '20ms; 2s 50ms; 4s 20ms'; got a list"),
        ('{from: "1ms; 1s 2ms", to: 9ms, steps: 2}', "5:28: switch switch, delay: from: want a number; got '1ms; 1s "
        "2ms'"),
        ("[1ms, {from: 1ms, to: 9ms, steps: 3}]", "5:27: switch switch, delay: want a time with its unit, such as 10s, "
         "200ms, 20us or 5ns, from 0ns to 1000s; or a schedule such as '20ms; 2s 50ms; 4s 20ms'; got a mapping"),
    ],
)  # fmt: skip
def test_refused(value: str, want: str) -> None:
    assert refusal(loaded, f"{HEAD}  - [switch, delay, {value}]\n").splitlines()[0] == f"<plan>:{want}"


def test_only_of_numbers() -> None:
    want = "group hosts, cc: want the name of a congestion control, such as cubic; got a mapping"
    assert refusal(loaded, HEAD + "  - [hosts, cc, {from: 1, to: 2, steps: 2}]\n") == f"<plan>:5:17: {want}"


def test_a_range_is_a_list_in_every_other_way() -> None:
    written = HEAD + "  - [switch, delay, [1ms, 5ms, 9ms]]\n"
    text = HEAD + "  - [switch, delay, {from: 1ms, to: 9ms, steps: 3}]\nexclude: [{switch.delay: 5ms}]\n"
    assert [point.id for point in loaded(text).points] == [point.id for point in loaded(written).points][::2]
    given_ = loaded(HEAD, "switch.delay={from: 1ms, to: 9ms, steps: 3}")
    assert [point.id for point in given_.points] == [point.id for point in loaded(written).points]


def test_a_sample_is_the_same_everywhere() -> None:
    """These values are the contract: another version of scipy or machine draws the same."""
    plan = loaded(f"{SAMPLE}{LISTS}design: {{sample: 4, seed: 1}}\n")
    assert [[text for _, _, text in point.tuples[1:]] for point in plan.points] == [
        ["13.26ms", "10.08mbit", "bbr", "0.5 bdp"],
        ["1.326ms", "15.08mbit", "reno", "2 bdp"],
        ["4.2ms", "12.58mbit", "bbr", "0.5 bdp"],
        ["42ms", "17.58mbit", "cubic", "2 bdp"],
    ]
    assert len({point.id for point in plan.points}) == 4


def test_a_larger_sample_begins_with_the_smaller() -> None:
    few, many = (loaded(f"{SAMPLE}{LISTS}design: {{sample: {count}, seed: 7}}\n") for count in (5, 40))
    assert [point.id for point in few.points] == [point.id for point in many.points[:5]]
    other = loaded(f"{SAMPLE}{LISTS}design: {{sample: 5, seed: 8}}\n")
    assert not {point.id for point in other.points} & {point.id for point in many.points}


def test_a_sample_is_even() -> None:
    plan = loaded(f"{SAMPLE}design: {{sample: 64}}\n")
    delays = [math.log10(point.settings["switch:sender"]["delay"] / 1e6) / 2 for point in plan.points]
    rates = [point.settings["switch:receiver"]["rate"] / 1e7 - 1 for point in plan.points]
    for shares in (delays, rates):
        assert sorted(int(min(share, 0.9999) * 16) for share in shares) == [
            bin_ for bin_ in range(16) for _ in range(4)
        ]
    cells = {(int(min(a, 0.9999) * 8), int(min(b, 0.9999) * 8)) for a, b in zip(delays, rates, strict=True)}
    assert len(cells) == 64


def test_excluded_points_are_drawn_again() -> None:
    plan = loaded(f"{SAMPLE}{LISTS}design: {{sample: 30}}\nexclude: [{{hosts.cc: [reno, bbr]}}]\n")
    assert {point.tuples[3][2] for point in plan.points} == {"cubic"}
    assert len(plan.points) == 30


def test_nothing_is_left_to_draw() -> None:
    text = f"{SAMPLE}{LISTS}design: {{sample: 2}}\nexclude: [{{hosts.cc: [cubic, reno, bbr]}}]\n"
    want = "<plan>:9:9: design: sample: want 2 points; got 0 different ones of 128 that were drawn"
    assert refusal(loaded, text) == want


def test_a_sample_of_lists_has_each_point_once() -> None:
    text = f"{HEAD}  - [switch, rate, 10mbit]\n{LISTS}design: {{sample: 6}}\n"
    plan = loaded(text)
    assert len({point.levels for point in plan.points}) == 6
    want = "<plan>:8:9: design: sample: want 7 points; got 6 different ones of 448 that were drawn"
    assert refusal(loaded, text.replace("6}", "7}")) == want


def test_what_a_sample_covers() -> None:
    plan = loaded(f"{SAMPLE}{LISTS}design: {{sample: 30}}\n")
    assert [(c.covered, c.feasible) for c in coverage(plan)] == [(5, 5), (6, 6), (0, 0)]
    assert gaps(plan, [point.levels for point in plan.points]) == []
    shown = overview(plan)
    assert shown.factors[0].values == ("1ms to 100ms, log",)
    assert shown.would_set["switch:sender"]["delay"] == ("1ms to 100ms, log",)


def test_repeats_of_a_sample() -> None:
    plan = loaded(f"{SAMPLE}design: {{sample: 3}}\nrepeat: 2\n")
    assert [point.repeat for point in plan.points] == [0, 1] * 3
    with pytest.raises(PlanError, match="expands to more than --max-points 5: design: sample: 3, repeated 2 times"):
        load_plan(f"{SAMPLE}design: {{sample: 3}}\nrepeat: 2\n".encode(), max_points=5)


@pytest.mark.parametrize(
    ("rest", "want"),
    [
        ("design: {sample: 3}\nexclude: [{switch.delay: 5ms}]", "8:26: exclude, switch.delay: want a tuple with a "
         "list of "
         "values; got switch.delay, which is drawn from 1ms to 100ms, log"),
        ("design: {sample: 3}\nexpect: [{metric: a, max: 1, when: {switch.delay: 5ms}}]", "8:51: expect a 1: when, "
         "switch.delay: want a tuple with a list of values; got switch.delay, which is drawn from 1ms to 100ms, log"),
        ("design: {sample: 3}\nzip: [[switch.delay, switch:receiver.rate]]", "8:8: zip: want tuples with lists of "
         "values; got "
         "switch.delay, which is drawn from 1ms to 100ms, log"),
        ("design: {sample: 3, cover: 2}", "7:9: design: want a field cover or a field sample; got cover and sample"),
        ("design: {sample: 0}", "7:18: design: sample: want a whole number from 1 to 10000; got 0"),
    ],
)  # fmt: skip
def test_refused_of_a_sample(rest: str, want: str) -> None:
    assert refusal(loaded, f"{SAMPLE}{rest}\n").splitlines()[0] == f"<plan>:{want}"


def test_no_comparison_in_a_sample() -> None:
    text = f"{SAMPLE}{LISTS}design: {{sample: 3}}\nexpect: [{{metric: a, at_least: 1, than: {{hosts.cc: reno}}}}]\n"
    assert refusal(loaded, text).endswith("than: want a design that has the other point; got points that are drawn")


def test_nothing_to_draw() -> None:
    want = "<plan>:5:9: design: sample: want a tuple with a range or several values; got none"
    assert refusal(loaded, f"{HEAD}design: {{sample: 3}}\n") == want
