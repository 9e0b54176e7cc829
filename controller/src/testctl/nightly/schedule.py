# SPDX-License-Identifier: Apache-2.0
"""Which points a nightly run has, and in which order: from the plan, what fits, and what the last run says.

The order by value is the plan's alone: costs come from the plan, and one common factor (how fast the machine is)
does not change it.  That factor only says where the order is cut, and is kept from run to run, so that two
runs of the same budget have the same points.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT
from testctl.plan import Plan, Point, cost_ms
from testctl.plan.prioritise import by_value
from testctl.results import Run


@dataclass(frozen=True)
class Schedule:
    """A nightly run as planned.

    points     the points to run, in this order
    first      ids of the points that are run first because they failed or changed
    left_out   the other points of the plan, the most valuable first
    testbed    where they run, which says what they cost
    """

    points: tuple[Point, ...]
    first: tuple[str, ...] = ()
    left_out: tuple[Point, ...] = ()
    testbed: str = DEFAULT

    @property
    def cost(self) -> int:
        return sum(map(self.cost_of, self.points))

    def cost_of(self, point: Point) -> int:
        """Cost units of a point: estimated ms."""
        return cost_ms(point, self.testbed)


def ranked(plan: Plan) -> list[Point]:
    """The plan's points, the most valuable first."""
    costs = [cost_ms(point, plan.testbed) for point in plan.points]
    strength = plan.design.strength or 2
    return [plan.points[i] for i in by_value([point.levels for point in plan.points], costs, strength)]


def schedule(plan: Plan, capacity: int | None, first: Collection[str] = ()) -> Schedule:
    """The most valuable points that fit into `capacity` (cost units); None: unknown, so all points.

    Points of `first` are run first; they replace others only if they would not have been selected anyway.
    """
    order = ranked(plan)
    urgent = [point for point in order if point.id in first]
    costs = {point.id: cost_ms(point, plan.testbed) for point in order}
    room = sum(costs.values()) if capacity is None else capacity
    chosen = _prefix(order, costs, room)
    if not {point.id for point in urgent} <= {point.id for point in chosen}:
        rest = [point for point in order if point.id not in first]
        chosen = _prefix([*urgent, *rest], costs, room)
    there = {point.id for point in chosen}
    ahead = [point for point in urgent if point.id in there]
    behind = [point for point in chosen if point.id not in first]
    left = tuple(point for point in order if point.id not in there)
    return Schedule((*ahead, *behind), tuple(point.id for point in ahead), left, plan.testbed)


def like(plan: Plan, run: Run) -> Schedule:
    """The points of an earlier nightly run, in its order.  Raises PlanError when the plan has not all of them."""
    known = {point.id: point for point in plan.points}
    if odd := [point.id for point in run.points if point.id not in known]:
        raise PlanError(f"--like {run.name}: want a run of this plan; {plan.file} has no point {odd[0]}")
    chosen = tuple(known[point.id] for point in run.points)
    there = {point.id for point in chosen}
    left = tuple(point for point in ranked(plan) if point.id not in there)
    return Schedule(chosen, (), left, plan.testbed)


def _prefix(order: Sequence[Point], costs: Mapping[str, int], room: int) -> list[Point]:
    """The points before the first one that does not fit."""
    chosen = []
    for point in order:
        room -= costs[point.id]
        if room < 0:
            break
        chosen.append(point)
    return chosen
