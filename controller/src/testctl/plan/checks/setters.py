# SPDX-License-Identifier: Apache-2.0
"""Finds the assignment that sets a parameter, and the parameters that a flow sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from testctl.core.point import Point
from testctl.plan.diagnostics import Place
from testctl.plan.model import Assignment

Setters = Mapping[tuple[str, str], int]
"""(entity, parameter) → index of the assignment that sets it."""


def place_of(setters: Setters, assignments: Sequence[Assignment], point: Point, entity: str, *params: str) -> Place:
    """The place of the first of these parameters that the plan sets."""
    index = next(setters[entity, param] for param in params if (entity, param) in setters)
    return assignments[index].place_of(point.levels[index])


def set_beyond(
    honoured: Collection[str], setters: Setters, assignments: Sequence[Assignment], point: Point, flow: str
) -> Iterator[str]:
    """Parameters of a flow with a value other than the default, except those in `honoured`."""
    for (name, param), index in setters.items():
        if name != flow or param in honoured:
            continue
        target = next(t for t in assignments[index].targets if (t.entity, t.param) == (name, param))
        if target.values[point.levels[index]] != target.spec.default:
            yield param
