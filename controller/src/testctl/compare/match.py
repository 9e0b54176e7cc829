# SPDX-License-Identifier: Apache-2.0
"""Matches the points of one run with those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from testctl.results import Run, RunPoint

Key = tuple[str, str]
"""Entity and parameter."""


@dataclass(frozen=True)
class Pair:
    """A point of A and the point of B that is the same test.

    asked  (entity, parameter, in A, in B) of each tuple that differs, the same for all points
    """

    a: RunPoint
    b: RunPoint
    asked: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True)
class Matched:
    pairs: tuple[Pair, ...]
    only_a: tuple[RunPoint, ...]
    only_b: tuple[RunPoint, ...]


def repeat_of(point: RunPoint) -> int:
    """The number of the repetition, from 0."""
    return int(point.point.get("repeat", 0))


def match_points(a: Run, b: Run) -> Matched:
    """Pairs in A's order: by id; then the unmatched points by tuples; then by the tuples that are equal in both runs.

    Ids differ if something other than the plan's tuples determines a point (a default, the topology).  The third
    step is for runs with different values (--set): a tuple whose values differ in the unmatched points is ignored,
    if the other tuples still distinguish all points.
    """
    pairs: list[Pair] = []
    left, right = list(a.points), list(b.points)
    for key_of in (attrgetter("id"), _tuples):
        left, right = _pair(left, right, key_of, pairs)
    ours, theirs = _levels(left), _levels(right)
    other = frozenset(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
    if left and right and other:
        left, right = _pair(left, right, lambda point: _without(point, other), pairs)
    order = {point.id: index for index, point in enumerate(a.points)}
    pairs.sort(key=lambda pair: order[pair.a.id])
    return Matched(tuple(pairs), tuple(left), tuple(right))


def _pair(
    left: Sequence[RunPoint], right: Sequence[RunPoint], key_of: Callable[[RunPoint], Hashable], pairs: list[Pair]
) -> tuple[list[RunPoint], list[RunPoint]]:
    """Pair points whose key is unique in each run; returns the unmatched points."""
    ours, theirs = Counter(map(key_of, left)), Counter(map(key_of, right))
    by_key = {key_of(point): point for point in right}
    met = {key for key, count in ours.items() if count == 1 and theirs.get(key) == 1}
    for point in left:
        if key_of(point) in met:
            other = by_key[key_of(point)]
            pairs.append(Pair(point, other, _asked(point, other)))
    return [p for p in left if key_of(p) not in met], [p for p in right if key_of(p) not in met]


def _tuples(point: RunPoint) -> Hashable:
    return frozenset(_values(point).items()), repeat_of(point)


def _without(point: RunPoint, keys: frozenset[Key]) -> Hashable:
    return frozenset(item for item in _values(point).items() if item[0] not in keys), repeat_of(point)


def _values(point: RunPoint) -> dict[Key, str]:
    return {(entity, parameter): str(value) for entity, parameter, value in point.tuples}


def _levels(points: Sequence[RunPoint]) -> dict[Key, set[str]]:
    levels: dict[Key, set[str]] = {}
    for point in points:
        for key, value in _values(point).items():
            levels.setdefault(key, set()).add(value)
    return levels


def _asked(a: RunPoint, b: RunPoint) -> tuple[tuple[str, str, str, str], ...]:
    ours, theirs = _values(a), _values(b)
    keys = [*ours, *(key for key in theirs if key not in ours)]
    return tuple((*key, ours.get(key, ""), theirs.get(key, "")) for key in keys if ours.get(key) != theirs.get(key))
