# SPDX-License-Identifier: Apache-2.0
"""The space of points: how many values every tuple has, and what is excluded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from testctl_agent.spec.errors import PlanError

from testctl.plan.model import Condition, Levels

_MAX_STEPS = 2_000_000  # that lead nowhere


class Space:
    """All choices of one level per size that meet none of the excludes.

    zips   indexes that always have the same level, and so the same size
    drawn  indexes of no use for coverage: their levels are drawn from a range

    Walking is bounded: excludes so entangled that some million steps lead nowhere raise PlanError.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        excludes: Sequence[Condition],
        zips: Sequence[Sequence[int]] = (),
        drawn: Collection[int] = (),
    ) -> None:
        self.sizes = tuple(sizes)
        self._leads = {index: group[0] for group in zips for index in group[1:]}
        self._own = [index for index in range(len(self.sizes)) if index not in self._leads]
        self.factors = tuple(index for index in self._own if self.sizes[index] > 1 and index not in drawn)
        """The indexes that differ between points, the first of each zip."""
        self.excludes = tuple(self._of_leads(exclude) for exclude in excludes)
        self._steps = 0
        self._excluded = sorted({index for exclude in self.excludes for index in exclude})

    @property
    def product(self) -> int:
        """How many there would be without excludes."""
        return math.prod(self.sizes[index] for index in self._own)

    def allows(self, levels: Mapping[int, int] | Levels) -> bool:
        """Whether no exclude is met; what a mapping leaves open meets none."""
        chosen = levels if isinstance(levels, Mapping) else dict(enumerate(levels))
        return not any(all(chosen.get(i, -1) in among for i, among in exclude.items()) for exclude in self.excludes)

    def points(self) -> Iterator[Levels]:
        """All of them, in order, the last level changing fastest."""
        for levels in self._walk(self._own, {}):
            yield self._whole(dict(zip(self._own, levels, strict=True)))

    def count(self, limit: int) -> int:
        """How many there are, or limit + 1 if there are more; nothing is kept."""
        rest = math.prod(self.sizes[index] for index in self._own if index not in self._excluded)
        total = 0
        for _ in self._walk(self._excluded, {}):
            total += rest
            if total > limit:
                return limit + 1
        return total

    def complete(self, fixed: Mapping[int, int]) -> Levels | None:
        """Some choice that has these levels, or None when there is none."""
        given, fixed = fixed, {self._leads.get(index, index): level for index, level in fixed.items()}
        if any(fixed[self._leads.get(index, index)] != level for index, level in given.items()):
            return None
        if not self.allows(fixed):
            return None
        order = [index for index in self._excluded if index not in fixed]
        point = next(self._walk(order, fixed), None)
        if point is None:
            return None
        return self._whole({**fixed, **dict(zip(order, point, strict=True))})

    def _whole(self, chosen: Mapping[int, int]) -> Levels:
        """All levels: an index that follows another has its level."""
        return tuple(chosen.get(self._leads.get(index, index), 0) for index in range(len(self.sizes)))

    def _of_leads(self, condition: Condition) -> Condition:
        """The condition on the first of each zip."""
        merged: dict[int, frozenset[int]] = {}
        for index, among in condition.items():
            lead = self._leads.get(index, index)
            merged[lead] = merged[lead] & among if lead in merged else among
        return merged

    def _walk(self, order: Sequence[int], fixed: Mapping[int, int]) -> Iterator[Levels]:
        """The allowed choices of the levels in `order`; an exclude is looked at as soon as it is decided."""
        position = {index: at for at, index in enumerate(order)}
        decided: list[list[Condition]] = [[] for _ in order]
        for exclude in self.excludes:
            if all(index in position or fixed.get(index, -1) in among for index, among in exclude.items()):
                at = max((position[index] for index in exclude if index in position), default=-1)
                if at < 0:
                    return
                decided[at].append(exclude)
        if not order:
            yield ()
            return
        chosen = dict(fixed)
        levels = [-1] * len(order)
        at = 0
        while at >= 0:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise PlanError("exclude: too entangled to be worked out; want fewer or simpler conditions")
            levels[at] += 1
            if levels[at] >= self.sizes[order[at]]:
                levels[at] = -1
                at -= 1
                continue
            chosen[order[at]] = levels[at]
            if any(all(chosen[i] in among for i, among in exclude.items()) for exclude in decided[at]):
                continue
            if at == len(order) - 1:
                self._steps = max(self._steps - 2 * len(order), 0)
                yield tuple(levels)
            else:
                at += 1
