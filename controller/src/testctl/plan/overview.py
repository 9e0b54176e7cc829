# SPDX-License-Identifier: Apache-2.0
"""What a dry run shows: how many points, what they cover, what would be set, how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from testctl_agent.spec.types import shown

from testctl.core.path_facts import PathFacts, paths_of
from testctl.plan.cost import cost_ms
from testctl.plan.cover import Coverage
from testctl.plan.model import Plan
from testctl.plan.points import coverage


@dataclass(frozen=True)
class SweptTuple:
    """A swept tuple: its key (entity.parameter) and its values as written."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Overview:
    """A plan at a glance.

    would_set   entity -> {parameter: values as shown, over all points}, what the plan says
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
    """The overview of a loaded plan."""
    would_set: dict[str, dict[str, tuple[str, ...]]] = {}
    for index, assignment in enumerate(plan.assignments):
        used = sorted({point.levels[index] for point in plan.points})
        for target in assignment.targets:
            would_set.setdefault(target.entity, {})[target.param] = tuple(assignment.texts[level] for level in used)
    defaults = {
        entity: {name: shown(value) for name, value in values.items() if name not in would_set.get(entity, {})}
        for entity, values in plan.defaults.items()
    }
    return Overview(
        name=plan.name,
        about=plan.about,
        points=len(plan.points),
        repeat=plan.repeat,
        factors=tuple(SweptTuple(factor.key, factor.texts) for factor in plan.factors),
        coverage=coverage(plan),
        would_set=would_set,
        defaults={entity: values for entity, values in defaults.items() if values},
        expectations=tuple(expectation.name for expectation in plan.expectations),
        paths=paths_of(plan.points),
        virtual_s=sum(point.duration_ns for point in plan.points) / 1e9,
        wall_s=sum(cost_ms(point, plan.testbed) for point in plan.points) / 1000,
    )
