# SPDX-License-Identifier: Apache-2.0
"""Tuples whose values belong together."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl.plan import Plan, coverage, load_plan, overview
from testctl.plan.cover import combinations_count, covering_array
from testctl.plan.cover import coverage as coverage_of
from testctl.plan.prioritise import gaps
from testctl.plan.space import Space
from testctl_agent.spec.errors import PlanError

from controller.tests.plan.test_properties import conditions
from controller.tests.support.refusal import refusal

TEXT = """\
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, [10mbit, 20mbit, 40mbit]]
  - [switch, delay, {from: 5ms, to: 15ms, steps: 3}]
  - [hosts, cc, [cubic, reno]]
  - [bulk, duration, 1s]
"""
ZIP = "zip: [[switch:receiver.rate, switch.delay]]\n"


def loaded(text: str, *overrides: str, without: tuple[str, ...] = ()) -> Plan:
    return load_plan(text.encode(), overrides=overrides, without=without)


def of(plan: Plan) -> list[str]:
    return [" ".join(text for _, _, text in point.tuples[:3]) for point in plan.points]


def test_the_first_with_the_first() -> None:
    values = ["10mbit 5ms", "20mbit 10ms", "40mbit 15ms"]
    plan = loaded(TEXT + ZIP)
    assert of(plan) == [f"{pair} {cc}" for pair in values for cc in ("cubic", "reno")]
    assert [(c.covered, c.feasible, c.total) for c in coverage(plan)] == [(5, 5, 5), (6, 6, 6), (0, 0, 0)]
    assert gaps(plan, [plan.points[0].levels])[0].feasible == 6
    assert [factor.together for factor in overview(plan).factors] == [("switch.delay",), ("switch:receiver.rate",), ()]
    assert overview(plan).to_json()["zip"] == [("switch.delay", "switch:receiver.rate")]


def test_in_other_designs() -> None:
    more = TEXT + "  - [hosts, tcp_ecn, [0, 1]]\n" + ZIP
    assert len(loaded(more + "design: {cover: 2}\n").points) == 6
    allowed = {pair.rpartition(" ")[0] for pair in of(loaded(TEXT + ZIP))}
    assert {pair.rpartition(" ")[0] for pair in of(loaded(more + "design: {sample: 6}\n"))} == allowed


def test_conditions_on_any_of_them() -> None:
    plan = loaded(TEXT + ZIP + "exclude: [{switch.delay: 10ms}, {switch:receiver.rate: 10mbit, switch.delay: 15ms}]\n")
    assert of(plan) == ["10mbit 5ms cubic", "10mbit 5ms reno", "40mbit 15ms cubic", "40mbit 15ms reno"]


def test_the_point_to_compare_with() -> None:
    plan = loaded(TEXT + ZIP + "expect: [{metric: a, at_least: 1, than: {switch.delay: 5ms}}]\n")
    assert plan.expectations[0].bounds.than == {0: 0, 1: 0}
    both = "expect: [{metric: a, at_least: 1, than: {switch.delay: 5ms, switch:receiver.rate: 20mbit}}]\n"
    assert refusal(loaded, TEXT + ZIP + both).endswith("than: want values of one point; got two that `zip` keeps apart")


def test_overrides() -> None:
    assert of(loaded(TEXT + ZIP, "switch.delay=1ms"))[::2] == [
        f"{rate} 1ms cubic" for rate in ("10mbit", "20mbit", "40mbit")
    ]
    assert of(loaded(TEXT + ZIP, "switch.delay=1ms,2ms,3ms"))[::2][1] == "20mbit 2ms cubic"
    assert len(loaded(TEXT + ZIP, without=("switch.delay",)).points) == 6


def test_too_many() -> None:
    with pytest.raises(
        PlanError, match=r"expands to more than --max-points 5: 3 \(switch:receiver.rate\) x 2 \(hosts.cc\) = 6"
    ):
        load_plan((TEXT + ZIP).encode(), max_points=5)


SHAPE = "want a list of lists of swept tuples, such as [[switch.rate, switch.delay]]"


@pytest.mark.parametrize(
    ("zips", "want"),
    [
        ("[switch.delay, hosts.cc]", f"8:7: zip: {SHAPE}; got switch.delay"),
        ("a", f"8:6: zip: {SHAPE}; got a"),
        ("[[switch.delay]]", f"8:7: zip: {SHAPE}; got a list"),
        ("[[switch.delay, [a]]]", "8:22: zip: want ENTITY.PARAM of a tuple; got a list"),
        ("[[switch.delay, hosts.c]]", "8:22: zip: group hosts: its host sender has no parameter named c"),
        ("[[switch.delay, hosts.initcwnd]]", "8:22: zip: no tuple sets hosts.initcwnd"),
        ("[[switch.delay, switch.delay]]", "8:22: zip: want every tuple once; got switch.delay again"),
        ("[[switch.delay, switch:receiver.rate], [hosts.cc, switch.delay]]", "8:56: zip: want every tuple once; got "
         "switch.delay again"),
        ("[[switch.delay, hosts.cc]]", "8:7: zip: want equally many values; got 3 of switch.delay, 2 of hosts.cc"),
        ("[[switch.delay, bulk.duration]]", "8:7: zip: want equally many values; got 3 of switch.delay, 1 of "
         "bulk.duration"),
    ],
)  # fmt: skip
def test_refused(zips: str, want: str) -> None:
    assert refusal(loaded, f"{TEXT}zip: {zips}\n").splitlines()[0].startswith(f"<plan>:{want}")


@st.composite
def zipped_spaces(draw: st.DrawFn) -> tuple[Space, Space]:
    """A space with zips, and one without in which the same is excluded."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=3, max_size=5))
    group = sorted(draw(st.sets(st.integers(0, len(sizes) - 1), min_size=2, max_size=3)))
    for index in group:
        sizes[index] = sizes[group[0]]
    excludes = draw(conditions(sizes, 3))
    apart = [
        {a: frozenset({level}), b: frozenset(range(sizes[b])) - {level}}
        for a, b in combinations(group, 2)
        for level in range(sizes[a])
    ]
    return Space(sizes, excludes, [group]), Space(sizes, [*excludes, *apart])


@given(zipped_spaces(), st.integers(1, 3), st.data())
def test_the_same_as_excluding_what_is_apart(spaces: tuple[Space, Space], strength: int, data: st.DataObject) -> None:
    zipped, excluded = spaces
    points = list(excluded.points())
    assert list(zipped.points()) == points
    assert zipped.count(1000) == len(points)
    fixed = {
        index: data.draw(st.integers(0, zipped.sizes[index] - 1))
        for index in sorted(data.draw(st.sets(st.integers(0, len(zipped.sizes) - 1))))
    }
    assert (zipped.complete(fixed) is None) == (excluded.complete(fixed) is None)
    rows = covering_array(zipped, strength, 1)
    assert set(rows) <= set(points)
    covered = coverage_of(zipped, rows, min(strength, len(zipped.factors)))
    assert covered.covered == covered.feasible
    assert covered.total == combinations_count([zipped.sizes[i] for i in zipped.factors], covered.strength)
