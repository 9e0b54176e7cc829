# SPDX-License-Identifier: Apache-2.0
"""Results against what papers published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from testctl.plan import Claim, Measured, Plan, evaluate, evaluate_claims, load_plan
from testctl_agent.spec.errors import PlanError

Load = Callable[..., Plan]
TWO = "tuples: [[hosts, cc, [a, b]]]\n"
PAPER = "paper: {source: s, published: 100, within: 0.1}"


def results(plan: Plan, *values: Any, metric: str = "throughput_bps") -> dict[str, Measured]:
    """One result a point; a text that is a verdict makes the point that; a mapping is by flow."""
    found: dict[str, Measured] = {}
    for point, value in zip(plan.points, values, strict=True):
        odd = value in ("skip", "broken", "invalid")
        by_flow = value if isinstance(value, Mapping) else {"bulk": value}
        metrics = {} if odd else {flow: {metric: one} for flow, one in by_flow.items()}
        found[point.id] = Measured(value if odd else "pass", "", metrics)
    return found


def claim_of(plan: Plan, found: Mapping[str, Measured]) -> Claim:
    (claim,) = evaluate_claims(plan, found, evaluate(plan, found)[1])
    assert Claim.from_json(claim.to_json()) == claim
    return claim


@pytest.mark.parametrize(
    ("expect", "a", "b", "want"),
    [
        (PAPER, 100, 100, ("reproduced", 100, 0)),
        (PAPER, 90, 130, ("reproduced", 110, 10)),
        (PAPER, 90, 131, ("differs", 110.5, 10.5)),
        (PAPER, 90, 90, ("reproduced", 90, -10)),
        (PAPER, 80, 99.9, ("differs", 89.95, -10.05)),
        (f"{PAPER}, when: {{hosts.cc: a}}", 100, 9, ("reproduced", 100, 0)),
        (PAPER, 100, "skip", ("reproduced", 100, 0)),
        (PAPER, 100, "invalid", ("not measured", 100, None)),
        (PAPER, 100, "broken", ("not measured", 100, None)),
        (PAPER, 100, None, ("not measured", 100, None)),
        (f"{PAPER}, quantifier: some", 100, None, ("reproduced", 100, 0)),
        (f"{PAPER}, quantifier: some", None, None, ("not measured", None, None)),
        (PAPER, "skip", "skip", ("not measured", None, None)),
        (PAPER, "text", "text", ("not measured", None, None)),
        (PAPER, float("inf"), 100, ("not measured", 100, None)),
        ("paper: {source: s, published: 100}", 100, 100, ("reproduced", 100, 0)),
        ("paper: {source: s, published: 100}", 100, 101, ("differs", 100.5, 0.5)),
        ("paper: {source: s, published: 0, within: 0.5}", 0, 0, ("reproduced", 0, None)),
        ("paper: {source: s, published: 0, within: 0.5}", 0, 1, ("differs", 0.5, None)),
        ("paper: {source: s, published: -2, within: 0.5}", -1, -2, ("reproduced", -1.5, -25)),
        ("paper: {source: s, published: 2, within: 0.25}, than: {hosts.cc: a}", 10, 25, ("reproduced", 2.5, 25)),
        ("paper: {source: s, published: 2, within: 0.25}, than: {hosts.cc: a}", 10, 26, ("differs", 2.6, 30)),
        ("paper: {source: s, published: 2}, than: {hosts.cc: a}", 0, 26, ("not measured", None, None)),
        ("paper: {source: s, published: 2}, than: {hosts.cc: a}", "skip", 26, ("not measured", None, None)),
        ("paper: {source: s, published: 2}, than: {hosts.cc: a}", None, 26, ("not measured", None, None)),
        ("min: 1, paper: {source: s, published: it is}", 1, 2, ("holds", 1.5, None)),
        ("min: 1, paper: {source: s, published: it is}", 0, 2, ("fails", 1, None)),
        ("min: 1, quantifier: some, paper: {source: s, published: it is}", 0, 2, ("holds", 1, None)),
        ("min: 1, paper: {source: s, published: it is}", None, 2, ("not measured", 2, None)),
        ("at_least: 2, than: {hosts.cc: a}, paper: {source: s, published: it is}", 1, 3, ("holds", 3, None)),
        ("min: 200, paper: {source: s, published: 100}", 100, 100, ("reproduced", 100, 0)),
    ],
)  # fmt: skip
def test_verdicts(plan_of: Load, expect: str, a: Any, b: Any, want: tuple[Any, ...]) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, {expect}}}]")
    claim = claim_of(plan, results(plan, a, b))
    assert (claim.verdict, claim.ours.mean, claim.difference_percent) == pytest.approx(want)
    assert (claim.verdict in ("reproduced", "holds")) == (claim.open == "")


def test_a_claim_without_a_bound_never_fails_the_run(plan_of: Load) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, {PAPER}}}]")
    points, expectations = evaluate(plan, results(plan, 1, None))
    assert [point.verdict for point in points] == ["pass", "pass"]
    assert expectations == []


def test_a_difference_needs_a_reason(plan_of: Load) -> None:
    for why, want in (("", "differs, and its `why` is missing"), (", why: the kernel is another", "")):
        plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, paper: {{source: s, published: 2{why}}}}}]")
        assert claim_of(plan, results(plan, 1, 1)).open == want
        assert claim_of(plan, results(plan, 2, 2)).open == ""
        plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, min: 2, paper: {{source: s, published: p{why}}}}}]")
        assert claim_of(plan, results(plan, 1, 2)).open == want.replace("differs", "fails")


def test_what_is_missing_is_named(plan_of: Load) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: throughput_bps, {PAPER}}}]")
    a, b = (point.id for point in plan.points)
    assert claim_of(plan, results(plan, None, 1)).found == f"point {a}: throughput_bps of bulk has no value"
    assert claim_of(plan, results(plan, 1, "broken")).found == f"point {b} is broken"
    assert claim_of(plan, results(plan, "x", "x")).found == "want a number; got x"


def test_points_that_set_took_away_are_not_missed(plan_of: Load) -> None:
    text = TWO + f"expect: [{{metric: throughput_bps, {PAPER}, when: {{hosts.cc: a}}}}]"
    plan = plan_of(text, overrides=["hosts.cc=b"])
    claim = claim_of(plan, results(plan, 1))
    assert (claim.verdict, claim.left_out, claim.open) == ("not measured", True, "")


def test_every_flow_counts_and_the_range_is_over_all(load: Load) -> None:
    head = "topology: pair\nflows: {a: sender -> receiver, b: sender -> receiver}\ntuples: [[hosts, cc, x]]\n"
    plan = load(head + "expect: [{metric: jain, paper: {source: s, published: 2}}]")
    ours = claim_of(plan, results(plan, {"a": 1, "b": 3}, metric="jain")).ours
    assert (ours.mean, ours.least, ours.most, ours.points, ours.selected) == (2, 1, 3, 1, 1)
    wide = claim_of(plan, results(plan, {"*": 2, "a": 9}, metric="jain"))
    assert wide.ours.mean == 2


def test_text_metrics(plan_of: Load) -> None:
    plan = plan_of(TWO + "expect: [{metric: stall_cause, equals: N R, paper: {source: s, published: N R}}]")
    claim = claim_of(plan, results(plan, "N R", "N R", metric="stall_cause"))
    assert (claim.verdict, claim.ours.text, claim.ours.points) == ("holds", "N R", 2)
    assert claim_of(plan, results(plan, "N R", "R", metric="stall_cause")).ours.text == "N R; R"


def test_published_is_in_the_unit_of_the_metric(plan_of: Load) -> None:
    for published, than, want in (("1.5ms", "", 1500), ("2", ", than: {hosts.cc: a}", 2), ('"2 times"', "", "2 times")):
        bound = ", max: 1" if isinstance(want, str) else ""
        plan = plan_of(
            TWO + f"expect: [{{metric: rtt_p99_us{bound}{than}, paper: {{source: s, published: {published}}}}}]"
        )
        assert plan.expectations[0].paper is not None
        assert plan.expectations[0].paper.published == want


def test_a_plan_of_a_paper_has_a_claim(tmp_path: Path) -> None:
    text = (
        'topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, kernel, "6.12"], [bulk, duration, 1s]]\n'
    )
    place = tmp_path / "plans" / "paper"
    place.mkdir(parents=True)
    for rest, at in (("", "1:1"), ("expect:\n  - {metric: jain, min: 0}\n", "5:3")):
        plan = place / "x.yaml"
        plan.write_text(text + rest, encoding="utf-8")
        with pytest.raises(PlanError) as caught:
            load_plan(plan)
        assert (
            str(caught.value) == f"{plan}:{at}: expect: want an entry with `paper:`, what a paper published; got none"
        )
        elsewhere = tmp_path / "x.yaml"
        elsewhere.write_text(text + rest, encoding="utf-8")
        assert load_plan(elsewhere).points
        with pytest.raises(PlanError, match="want an entry with `paper:`"):
            load_plan(elsewhere, paper=True)


@pytest.mark.parametrize(
    ("bound", "want"),
    [
        ("min: 1", "at least 1"),
        ("min: 1, max: 2", "at least 1 and at most 2"),
        ("equals: 3", "exactly 3"),
        ("equals: 3, tolerance: 5%", "3 ± 5%"),
        ("at_most: 0.25, than: {hosts.cc: a}", "at most 0.25"),
    ],
)
def test_a_claim_says_what_its_property_wants(plan_of: Load, bound: str, want: str) -> None:
    plan = plan_of(TWO + f"expect: [{{metric: jain, {bound}, paper: {{source: s, published: p}}}}]")
    claim = claim_of(plan, results(plan, 1, 1, metric="jain"))
    assert (claim.want, claim.than) == (want, "hosts.cc a" if "than" in bound else "")
