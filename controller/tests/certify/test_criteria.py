# SPDX-License-Identifier: Apache-2.0
"""The criteria: which points each has for a congestion control, and what is wrong with a plan that is none."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from testctl.certify.criteria import EVERY, LEVELS, OF, chosen, load, plans
from testctl_agent.spec.errors import PlanError

PLAN = """
about: "RFC 9743, 5.2.1 (MUST): another flow keeps half"
topology: {dumbbell: {senders: 2, receivers: 2}}
flows: {tested: sender1 -> receiver1, other: sender2 -> receiver2}
tuples:
  - [tested, cc, [cubic, reno]]
  - [left:right, rate, [10mbit, 20mbit, 40mbit]]
  - [switches, delay, [5ms, 10ms]]
  - [left:right, buffer, [30kB, 100kB]]
  - [flows, duration, 1s]
expect:
  - {name: it keeps half, metric: goodput_bps, flow: other, at_least: 0.5, than: {tested.cc: reno}}
  - {name: something arrives, metric: goodput_bps, min: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "harm.yaml").write_text(PLAN)
    return tmp_path / "harm.yaml"


@pytest.mark.parametrize("cc", ["bbr", "cubic", "reno"])
def test_every_criterion_has_points(cc: str) -> None:
    criteria = load(plans(), cc, None, 1)
    assert len(criteria) == len(plans()) >= 25
    sections = [c.source for c in criteria if c.source.startswith(OF)]
    assert sections == [c.source for c in criteria][: len(sections)], "those of other documents come last"
    assert sections.index("RFC 9743, 7.9") < sections.index("RFC 9743, 7.11")
    for criterion in criteria:
        assert criterion.level in LEVELS
        tested = [point for point in criterion.plan.points if point.id in criterion.tested]
        ccs = {str(flow.options["cc"]) for point in tested for flow in point.flows if flow.name.startswith("tested")}
        assert tested
        assert ccs <= {cc}


@pytest.mark.parametrize("strength", [1, 2])
def test_few_points_have_every_combination(file: Path, strength: int) -> None:
    (few,), (every,) = load([file], "bbr", None, strength), load([file], "bbr", None, EVERY)
    assert len(every.tested) == 12
    assert len(few.tested) == {1: 3, 2: 6}[strength]

    def seen(ids: frozenset[str]) -> set[tuple[object, ...]]:
        rows = [point.tuples for point in every.plan.points if point.id in ids]
        return {of for row in rows for of in combinations(row, strength)}

    assert seen(few.tested) == seen(every.tested)


def test_others_are_there_to_be_compared_with(file: Path) -> None:
    (criterion,) = load([file], "bbr", None, 1)
    assert len(criterion.plan.points) == 2 * len(criterion.tested)
    at = next(number for number, one in enumerate(criterion.plan.assignments) if one.key == "tested.cc")
    assert criterion.plan.assignments[at].texts == ("bbr", "reno")
    assert [e.when[at] for e in criterion.plan.expectations] == [frozenset({0})] * 2


def test_what_others_are_compared_with_is_judged_alone(file: Path) -> None:
    (criterion,) = load([file], "reno", None, 1)
    assert {point.id for point in criterion.plan.points} == criterion.tested
    assert [e.name for e in criterion.plan.expectations if not e.bounds.than] == ["something arrives"]


def test_the_kernel_is_every_hosts(file: Path) -> None:
    (criterion,) = load([file], "bbr", "6.1", 1)
    assert {point.settings["sender1"]["kernel"] for point in criterion.plan.points} == {"6.1"}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "RFC 9743, 5.2.1 (MUST): ",
            "",
            "about: want 'RFC NUMBER, SECTION (MUST or SHOULD or should or ought or scenario): SENTENCE'",
        ),
        ("(MUST)", "(must)", "got 'RFC 9743, 5.2.1 (must): another flow keeps half'"),
        ("5.2.1", "5.2.", "got 'RFC 9743, 5.2. (MUST): another flow keeps half'"),
        ("[tested, cc, [cubic, reno]]", "[other, cc, reno]", "no tuple sets tested.cc"),
    ],
)
def test_no_criterion(file: Path, old: str, new: str, error: str) -> None:
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(PlanError) as refused:
        load([file], "bbr", None, 1)
    assert error in str(refused.value).replace('"', "")


def test_a_plan_that_compares_nothing_needs_the_tuple_too(file: Path) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if "than" not in line and "tested, cc" not in line))
    with pytest.raises(PlanError, match=r"harm\.yaml: want a tuple \[tested, cc, …\] for the congestion control"):
        load([file], "bbr", None, 1)


def test_a_criterion_without_an_expectation(file: Path) -> None:
    file.write_text(file.read_text().partition("expect:")[0])
    with pytest.raises(
        PlanError, match=r"harm\.yaml: want an expectation, which the criterion is judged by; there is none"
    ):
        load([file], "bbr", None, 1)


def test_chosen_by_name_or_file(file: Path, tmp_path: Path) -> None:
    assert [path.stem for path in chosen(["collapse", str(file), "collapse"])] == ["collapse", "harm"]
    assert chosen([]) == plans()
    (tmp_path / "collapse.yaml").write_text(PLAN)
    with pytest.raises(PlanError, match="--plan: want plans of different names; two are named collapse"):
        chosen(["collapse", str(tmp_path / "collapse.yaml")])
