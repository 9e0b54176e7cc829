# SPDX-License-Identifier: Apache-2.0
"""Rules of TCP that were broken make a point fail, but where the plan allows them with a reason."""

from __future__ import annotations

import pytest
from testctl.plan import load_plan
from testctl.plan.judge import Measured, Results, evaluate
from testctl_agent.spec.errors import PlanError

PLAN = """topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [sender, cc, [cubic, reno]]
  - [bulk, bytes, 10kB]
"""
ALLOW = "allow:\n  - {rule: ack-delay, reason: measured on purpose, when: {sender.cc: reno}}\n"
BROKEN = {"rules_violated": "ack-delay 2, beyond-window 1", "first_violation": "ack-delay: at 3 ms b waits; too long"}


def verdicts(text: str, of: dict[str, str]) -> list[tuple[str, str]]:
    plan = load_plan(text.encode())
    results: Results = {point.id: Measured("pass", metrics={"bulk": of}) for point in plan.points}
    return [(point.verdict, point.reason) for point in evaluate(plan, results)[0]]


def test_a_broken_rule_makes_the_point_fail() -> None:
    assert verdicts(PLAN, {"rules_violated": "none", "first_violation": "none"}) == [("pass", ""), ("pass", "")]
    text = (
        "the rule ack-delay was broken by bulk, 2 times (at 3 ms b waits, too long); "
        "the rule beyond-window was broken by bulk"
    )
    assert verdicts(PLAN, BROKEN) == [("fail", text)] * 2


def test_what_a_plan_allows_makes_none_fail() -> None:
    first, second = verdicts(PLAN + ALLOW, BROKEN)
    assert "ack-delay" in first[1]
    assert second == ("fail", "the rule beyond-window was broken by bulk")


def test_what_is_allowed_is_reported_with_its_reason() -> None:
    plan = load_plan((PLAN + ALLOW).encode())
    for of, count in ((BROKEN, 1), ({"rules_violated": "none"}, 0)):
        results: Results = {point.id: Measured("pass", metrics={"bulk": of}) for point in plan.points}
        (reported,) = evaluate(plan, results)[1]
        assert (reported.name, reported.verdict) == ("ack-delay may be broken: measured on purpose", "pass")
        assert reported.detail == f"{count} of 1 point break it"
        assert len(reported.points) == count


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        ("{rule: ack-dely, reason: r}", "allow: no rule named ack-dely; did you mean ack-delay?"),
        ("{rule: ack-delay}", "allow: want a field reason; got none"),
        ("{rule: ack-delay, reason: ' '}", "allow ack-delay: want a reason; got none"),
        ("{rule: ack-delay, reason: r, when: {sender.cc: bbr}}", "allow ack-delay, when, sender.cc: want one of its"),
    ],
)
def test_refused(entry: str, want: str) -> None:
    with pytest.raises(PlanError, match=want):
        load_plan(f"{PLAN}allow:\n  - {entry}\n".encode(), rules=("ack-delay", "beyond-window"))
