# SPDX-License-Identifier: Apache-2.0
"""By what a plan detects a mutant: what a point shows with it and does not show without it."""

from __future__ import annotations

import pytest
from testctl.metrics import metric_names
from testctl.mutate.detect import MOST_CRASHES, Campaign, detections, settled
from testctl.mutate.trial import Ran
from testctl.plan import Measured, load_plan
from testctl.testbeds.lab import LabTestbed

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, [cubic, reno]]
  - [bulk, bytes, 10kB]
allow: [{rule: ack-delay, reason: an example}]
expect:
  - {name: fast, metric: throughput_bps, min: 100, when: {hosts.cc: cubic}}
  - {name: faster, metric: throughput_bps, at_least: 2, when: {hosts.cc: cubic}, than: {hosts.cc: reno}}
  - {name: one is fast, metric: throughput_bps, min: 500, quantifier: some}
"""
PLANNED = load_plan(PLAN.encode(), metrics=metric_names())
CUBIC, RENO = PLANNED.points


def measured(throughput: float | None, verdict: str = "pass", rules: str = "", failure: str = "none") -> Measured:
    metrics = {"throughput_bps": throughput, "rules_violated": rules, "first_violation": "", "failure": failure}
    assert verdict in ("pass", "fail", "invalid", "broken")
    return Measured(verdict, "a reason", {"bulk": metrics})  # type: ignore[arg-type]  # it is one of them


def keys(cubic: Measured, reno: Measured | None = None) -> set[tuple[str, str]]:
    results = {CUBIC.id: cubic} | ({RENO.id: reno} if reno is not None else {})
    return set(detections(PLANNED, CUBIC, results))


@pytest.mark.parametrize(
    ("cubic", "reno", "detected"),
    [
        (measured(600), measured(200), set()),
        (measured(50), None, {("expectation", "fast")}),
        (measured(600), measured(400), {("expectation", "faster")}),
        (measured(600), None, set()),
        (measured(400), measured(100), {("expectation", "one is fast")}),
        (measured(600, rules="ack-delay 1"), None, set()),
        (measured(600, rules="ack-delay 1, nagle 2"), None, {("rule", "nagle")}),
        (measured(600, failure="refused"), None, {("expectation", "flow failed")}),
        (measured(None), None, {("invalid", "fast")}),
        (measured(600, "invalid"), None, {("invalid", ""), ("invalid", "fast")}),
        (measured(600, "broken"), None, {("crash", "")}),
        (measured(50, "fail", "nagle 2"), None, {("crash", ""), ("rule", "nagle"), ("expectation", "fast")}),
        (measured(600, "fail"), None, {("crash", "")}),
    ],
)
def test_detections(cubic: Measured, reno: Measured | None, detected: set[tuple[str, str]]) -> None:
    assert keys(cubic, reno) == detected


def test_where_a_mutant_changes_nothing_a_point_is_as_without_it() -> None:
    usual = {
        (0, CUBIC.id): Ran(measured(600), "", 1.0, "", 0, "3"),
        (0, RENO.id): Ran(measured(1), "", 1.0, "", 0, "1"),
    }
    campaign = Campaign(LabTestbed({}, ""), [PLANNED], usual)
    assert set(campaign.unchanged(0)) == {CUBIC.id, RENO.id}
    assert set(campaign.unchanged(0, 1)) == {RENO.id}
    assert set(campaign.unchanged(0, 2)) == {CUBIC.id, RENO.id}


@pytest.mark.parametrize(
    ("kinds", "crashes", "enough"),
    [
        ([], 0, False),
        (["invalid"], 0, False),
        (["crash"], 1, False),  # a warning, or a lab that ended at one of its points
        (["crash"], MOST_CRASHES, True),
        (["crash", "rule"], 1, True),
        (["expectation"], 0, True),
    ],
)
def test_a_crash_alone_is_tried_at_other_points_too(kinds: list[str], crashes: int, enough: bool) -> None:
    assert settled(kinds, crashes) == enough
