# SPDX-License-Identifier: Apache-2.0
"""A plan of some of its points."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from testctl.plan.judge import counterpart, matching
from testctl.plan.model import Expectation, Plan


def counterparts(plan: Plan, ids: Collection[str]) -> set[str]:
    """The ids of other points that expectations compare these with."""
    points = [point for point in plan.points if point.id in ids]
    than = {
        (counterpart(point.levels, expectation.bounds.than), point.repeat)
        for expectation in plan.expectations
        for point in matching(expectation, points)
        if expectation.bounds.than
    }
    return {point.id for point in plan.points if (point.levels, point.repeat) in than} - set(ids)


def subset(plan: Plan, there: Iterable[str]) -> Plan:
    """The plan of the points that were run, with the expectations that these are enough to judge."""
    ids = set(there)
    points = tuple(point for point in plan.points if point.id in ids)
    levels = {(point.levels, point.repeat) for point in points}

    def judgeable(expectation: Expectation) -> bool:
        about = matching(expectation, points)
        than = expectation.bounds.than
        whole = expectation.quantifier == "every" or len(about) == len(matching(expectation, plan.points))
        return whole and all((counterpart(p.levels, than), p.repeat) in levels for p in about)

    if len(points) == len(plan.points):
        return plan
    return replace(plan, points=points, expectations=tuple(e for e in plan.expectations if judgeable(e)))
