# SPDX-License-Identifier: Apache-2.0
"""What a dry run shows: how many points, what they cover, what would be set, how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testctl_agent.spec.types import shown

from testctl.core.path_facts import PathFacts, paths_of
from testctl.core.point import Point
from testctl.plan.cost import cost_ms
from testctl.plan.cover import Coverage
from testctl.plan.formula import Formula
from testctl.plan.model import Assignment, Plan, Target
from testctl.plan.numbers import value_shown
from testctl.plan.points import coverage, setting


@dataclass(frozen=True)
class SweptTuple:
    """A swept tuple: its key (entity.parameter) and its values as written, or the range from which they are drawn.

    together  the keys of the tuples that are zipped with it
    """

    key: str
    values: tuple[str, ...]
    together: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overview:
    """A plan at a glance.

    would_set   entity -> {parameter: values as shown, over all points}, what the plan says; of a formula with its value
    defaults    the same for what is set because the plan says nothing
    paths       flow -> what its path is where nothing else is on it, each once; without rates: nothing
    virtual_s   seconds of traffic over all points
    wall_s      the estimate for the plan's testbed, one point after the other, without boots
    """

    name: str
    about: str
    points: int
    repeat: int
    factors: tuple[SweptTuple, ...]
    coverage: tuple[Coverage, ...]
    would_set: dict[str, dict[str, tuple[str, ...]]]
    defaults: dict[str, dict[str, str]]
    expectations: tuple[str, ...]
    paths: dict[str, tuple[PathFacts, ...]]
    virtual_s: float
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        return {
            "plan": self.name,
            "about": self.about,
            "points": self.points,
            "repeat": self.repeat,
            "factors": {factor.key: list(factor.values) for factor in self.factors},
            "zip": sorted(
                {tuple(sorted((factor.key, *factor.together))) for factor in self.factors if factor.together}
            ),
            "coverage": [
                {
                    "strength": c.strength,
                    "covered": c.covered,
                    "feasible": c.feasible,
                    "total": c.total,
                    "share": c.share,
                    "sampled": c.sampled,
                }
                for c in self.coverage
            ],
            "would_set": {e: {p: list(v) for p, v in params.items()} for e, params in self.would_set.items()},
            "defaults": self.defaults,
            "expectations": list(self.expectations),
            "paths": {flow: [facts.to_json() for facts in paths] for flow, paths in self.paths.items()},
            "virtual_s": self.virtual_s,
            "wall_s": self.wall_s,
        }


def overview(plan: Plan) -> Overview:
    would_set: dict[str, dict[str, tuple[str, ...]]] = {}
    for index, assignment in enumerate(plan.assignments):
        used: dict[int, list[Point]] = {}
        for point in plan.points:
            used.setdefault(point.levels[index], []).append(point)
        for target in assignment.targets:
            values = (
                [str(assignment.range)]
                if assignment.range
                else [_with_value(assignment.texts[level], target, level, used[level]) for level in sorted(used)]
            )
            would_set.setdefault(target.entity, {})[target.param] = tuple(values)
    defaults = {
        entity: {name: shown(value) for name, value in values.items() if name not in would_set.get(entity, {})}
        for entity, values in plan.defaults.items()
    }
    return Overview(
        name=plan.name,
        about=plan.about,
        points=len(plan.points),
        repeat=plan.repeat,
        factors=tuple(
            SweptTuple(factor.key, (str(factor.range),) if factor.range else factor.texts, _together(plan, factor))
            for factor in plan.factors
        ),
        coverage=coverage(plan),
        would_set=would_set,
        defaults={entity: values for entity, values in defaults.items() if values},
        expectations=tuple(expectation.name for expectation in plan.expectations),
        paths=paths_of(plan.points),
        virtual_s=sum(point.duration_ns for point in plan.points) / 1e9,
        wall_s=sum(cost_ms(point, plan.testbed) for point in plan.points) / 1000,
    )


def _together(plan: Plan, factor: Assignment) -> tuple[str, ...]:
    groups = ([plan.assignments[index] for index in group] for group in plan.zips)
    return tuple(other.key for group in groups if factor in group for other in group if other is not factor)


def _with_value(text: str, target: Target, level: int, points: Sequence[Point]) -> str:
    """The text of a value; of a formula, with what it is: of several points the least and the greatest."""
    if not isinstance(target.values[level], Formula):
        return text
    values = [value for point in points if isinstance(value := setting(point, target), int | float)]
    ends = dict.fromkeys(value_shown(target.spec.type, value) for value in (min(values), max(values)))
    return f"{text} ({' … '.join(ends)})"
