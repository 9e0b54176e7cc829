# SPDX-License-Identifier: Apache-2.0
"""Selects and orders the points of a nightly run, by the plan, the budget and the last run.

The order by value is the plan's alone: costs come from the plan, and one common factor (how fast the machine is)
does not change it.  That factor only determines where the order is cut, and is kept from run to run, so that two
runs of the same budget have the same points.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.plan import Plan, Point, cost_ms
from testctl.plan.prioritise import by_value
from testctl.results import Run


@dataclass(frozen=True)
class Schedule:
    """A nightly run as planned.

    points     the points to run, in this order
    first      ids of the points that are run first because they failed or changed
    left_out   the other points of the plan, the most valuable first
    testbed    where they run, which determines their cost
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


@dataclass(frozen=True)
class _Cell:
    """Points that are chosen together, and their cost."""

    points: tuple[Point, ...]
    cost: int

    @property
    def id(self) -> str:
        return self.points[0].id


def _cells(plan: Plan) -> list[_Cell]:
    """Groups of points, the most valuable first; in wall-clock time all repetitions of a point are one group."""
    together: dict[object, list[Point]] = {}
    for point in plan.points:
        together.setdefault(point.id if kind_of(plan.testbed).deterministic else point.levels, []).append(point)
    cells = [
        _Cell(tuple(points), sum(cost_ms(point, plan.testbed) for point in points)) for points in together.values()
    ]
    levels = [cell.points[0].levels for cell in cells]
    return [cells[i] for i in by_value(levels, [cell.cost for cell in cells], plan.design.strength or 2)]


def ranked(plan: Plan) -> list[Point]:
    """The plan's points, the most valuable first."""
    return _points(_cells(plan))


def schedule(plan: Plan, capacity: int | None, first: Collection[str] = ()) -> Schedule:
    """The most valuable points that fit into `capacity` (cost units); None: unknown, so all points.

    Points of `first` are run first; they replace others only if they would not have been selected anyway.
    """
    order = _cells(plan)
    urgent = [cell for cell in order if any(point.id in first for point in cell.points)]
    named = {cell.id for cell in urgent}
    others = [cell for cell in order if cell.id not in named]
    room = sum(cell.cost for cell in order) if capacity is None else capacity
    there = _prefix(order, room)
    if not named <= there:
        there = _prefix([*urgent, *others], room)
    ahead = _points(cell for cell in urgent if cell.id in there)
    behind = _points(cell for cell in others if cell.id in there)
    left = _points(cell for cell in order if cell.id not in there)
    return Schedule((*ahead, *behind), tuple(point.id for point in ahead), tuple(left), plan.testbed)


def like(plan: Plan, run: Run) -> Schedule:
    """The points of an earlier nightly run, in its order.  Raises PlanError when the plan has not all of them."""
    known = {point.id: point for point in plan.points}
    if odd := [point.id for point in run.points if point.id not in known]:
        raise PlanError(f"--like {run.name}: want a run of this plan; {plan.file} has no point {odd[0]}")
    chosen = tuple(known[point.id] for point in run.points)
    there = {point.id for point in chosen}
    left = tuple(point for point in ranked(plan) if point.id not in there)
    return Schedule(chosen, (), left, plan.testbed)


def _prefix(order: Sequence[_Cell], room: int) -> set[str]:
    """Ids of the points before the first one that does not fit."""
    names = set()
    for cell in order:
        room -= cell.cost
        if room < 0:
            break
        names.add(cell.id)
    return names


def _points(cells: Iterable[_Cell]) -> list[Point]:
    return [point for cell in cells for point in cell.points]
