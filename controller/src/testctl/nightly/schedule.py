# SPDX-License-Identifier: Apache-2.0
"""Which points a nightly run has, and in which order: from the plan, what fits, and what the last run says.

The order by value is the plan's alone: costs come from the plan, and one common factor (how fast the machine is)
does not change it.  That factor only says where the order is cut, and is kept from run to run, so that two
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


Cell = tuple[Point, ...]
"""Points that are chosen together."""


def _cells(plan: Plan) -> list[Cell]:
    """The most valuable first; in wall-clock time repetitions of a point are worth nothing without each other."""
    cells: list[Cell]
    if kind_of(plan.testbed).deterministic:
        cells = [(point,) for point in plan.points]
    else:
        by: dict[tuple[int, ...], list[Point]] = {}
        for point in plan.points:
            by.setdefault(tuple(point.levels), []).append(point)
        cells = [tuple(points) for points in by.values()]
    costs = [sum(_costs(cell, plan)) for cell in cells]
    return [cells[i] for i in by_value([cell[0].levels for cell in cells], costs, plan.design.strength or 2)]


def ranked(plan: Plan) -> list[Point]:
    """The plan's points, the most valuable first."""
    return [point for cell in _cells(plan) for point in cell]


def schedule(plan: Plan, capacity: int | None, first: Collection[str] = ()) -> Schedule:
    """The most valuable points that fit into `capacity` (cost units); None: unknown, so all points.

    Points of `first` are run first; they replace others only if they would not have been selected anyway.
    """
    order = _cells(plan)
    urgent = [cell for cell in order if any(point.id in first for point in cell)]
    room = sum(cost for cell in order for cost in _costs(cell, plan)) if capacity is None else capacity
    chosen = _prefix(plan, order, room)
    if not _ids(urgent) <= _ids(chosen):
        chosen = _prefix(plan, [*urgent, *_without(order, urgent)], room)
    there = _ids(chosen)
    ahead = tuple(point for cell in urgent if cell[0].id in there for point in cell)
    behind = (point for cell in _without(chosen, urgent) for point in cell)
    left = tuple(point for cell in _without(order, chosen) for point in cell)
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


def _prefix(plan: Plan, order: Sequence[Cell], room: int) -> list[Cell]:
    """Those before the first one that does not fit."""
    chosen = []
    for cell in order:
        room -= sum(_costs(cell, plan))
        if room < 0:
            break
        chosen.append(cell)
    return chosen


def _costs(cell: Cell, plan: Plan) -> list[int]:
    return [cost_ms(point, plan.testbed) for point in cell]


def _ids(cells: Iterable[Cell]) -> set[str]:
    return {cell[0].id for cell in cells}


def _without(cells: Sequence[Cell], others: Sequence[Cell]) -> list[Cell]:
    gone = _ids(others)
    return [cell for cell in cells if cell[0].id not in gone]
