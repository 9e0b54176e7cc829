# SPDX-License-Identifier: Apache-2.0
"""What varies between the points of a run, with a name short enough for an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from testctl_agent.spec.types import shown

from testctl.plan.failures import in_words

ABSENT = "–"


class WithTuples(Protocol):
    """A point by what it sets."""

    @property
    def id(self) -> str: ...
    @property
    def tuples(self) -> Sequence[tuple[str, str, Any]]: ...
    @property
    def repeat(self) -> int: ...


@dataclass(frozen=True)
class Factor:
    """Something that varies.

    label    its name on an axis: the parameter alone where that says enough
    values   the values, in order of first use
    of       the value of each point, by point id
    key      "entity.parameter" of the first of its entities; "repeat" of the repetition
    """

    label: str
    values: Sequence[str]
    of: dict[str, str]
    key: str = ""


def factors(points: Sequence[WithTuples]) -> list[Factor]:
    """The factors of a run, in the order of the tuples.

    Entities that always have the same value of a parameter (the members of a group) are one factor.
    """
    columns: dict[tuple[str, str], dict[str, str]] = {}
    for point in points:
        for entity, parameter, value in point.tuples:
            columns.setdefault((entity, parameter), {})[point.id] = shown(value)
    repeats = {point.id: str(point.repeat) for point in points}
    columns[("", "repeat")] = repeats
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (entity, parameter), column in columns.items():
        row = tuple(column.get(point.id, ABSENT) for point in points)
        if len(set(row)) > 1:
            merged.setdefault((parameter, row), []).append(entity)
    uses = Counter(parameter for parameter, _ in merged)
    found = []
    for (parameter, row), entities in merged.items():
        label = parameter if uses[parameter] == 1 else f"{'+'.join(entities)} {parameter}"
        of = {point.id: value for point, value in zip(points, row, strict=True)}
        found.append(Factor(label, list(dict.fromkeys(row)), of, f"{entities[0]}.{parameter}".lstrip(".")))
    return found


def describe(point: WithTuples, varying: Sequence[Factor]) -> str:
    """A point in words: what distinguishes it, or its id."""
    words = [f"{factor.label} {factor.of[point.id]}" for factor in varying if factor.of.get(point.id, ABSENT) != ABSENT]
    return ", ".join(words) or point.id


def in_common(points: Sequence[WithTuples], ids: Collection[str]) -> str:
    """What the points of these ids set and the others do not, in words: "all 5 with cc=cubic"; or ""."""
    varying = factors(points)
    values = [{factor.label: factor.of[point.id] for factor in varying} for point in points]
    return in_words(values, [point.id in ids for point in points])
