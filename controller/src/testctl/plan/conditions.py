# SPDX-License-Identifier: Apache-2.0
"""Reads {ENTITY.PARAM: value or values} as indices of tuples and of their values."""

from __future__ import annotations

from collections.abc import Sequence as List
from dataclasses import dataclass

from testctl.plan.diagnostics import Problems, show, suggest
from testctl.plan.model import Assignment, Condition
from testctl.plan.named_files import ValueFiles
from testctl.plan.names import Names
from testctl.plan.registry import Parameters
from testctl.plan.tuples import OVERRIDE, targets_of, value_of
from testctl.plan.yaml_reader import Mapping as MappingNode
from testctl.plan.yaml_reader import Node, Scalar, Sequence, what


@dataclass(frozen=True)
class Reader:
    """Finds tuples by key and levels by value.

    files   reads the files that values name
    zips    the indexes of tuples whose values belong together
    sample  whether the plan's design draws its points
    """

    assignments: List[Assignment]
    names: Names
    parameters: Parameters
    problems: Problems
    files: ValueFiles
    zips: List[List[int]] = ()
    sample: bool = False

    def condition(self, node: Node, who: str) -> Condition | None:
        """None after a fault, which is among the problems."""
        if not isinstance(node, MappingNode) or not node.entries:
            self.problems.add(node.place, f"{who}: want a mapping such as {{ends.cc: cubic}}; got {what(node)}")
            return None
        condition: dict[int, frozenset[int]] = {}
        for key, value in node.entries:
            index = self.tuple_of(key, who)
            if index is None:
                return None
            levels = self._levels(index, value, f"{who}, {show(key.text)}")
            if levels is None:
                return None
            condition[index] = condition[index] & levels if index in condition else levels
        return condition

    def replacement(self, node: Node, who: str) -> dict[int, int] | None:
        """Like condition(), with one value for each key, and for each tuple zipped with it; -1 for a value that --set
        removed.
        """
        condition = self.condition(node, who)
        if condition is None:
            return None
        if self.sample:
            self.problems.add(node.place, f"{who}: want a design that has the other point; got points that are drawn")
            return None
        if any(len(levels) > 1 for levels in condition.values()):
            self.problems.add(node.place, f"{who}: want one value for each")
            return None
        levels = {index: next(iter(of), -1) for index, of in condition.items()}
        together = {i: levels[index] for index in levels for group in self.zips if index in group for i in group}
        if any(together.get(index, level) != level for index, level in levels.items()):
            self.problems.add(node.place, f"{who}: want values of one point; got two that `zip` keeps apart")
            return None
        return levels | together

    def tuple_of(self, key: Scalar, who: str) -> int | None:
        """The index of the tuple that sets ENTITY.PARAM; None after a fault, which is among the problems."""
        entity, _, param = key.text.partition(".")
        entity = self.names.canonical(entity)
        try:
            if not entity or not param:
                raise ValueError(f"want ENTITY.PARAM; got {what(key)}{self.meant(key.text)}")
            wanted = {target.key for target in targets_of(self.names, self.parameters, entity, param)}
        except ValueError as error:
            self.problems.add(key.place, f"{who}: {error}")
            return None
        owners: dict[int, int] = {}
        for index, assignment in enumerate(self.assignments):
            own_keys = {target.key for target in assignment.targets}
            if assignment.entity == entity and own_keys <= wanted:
                return index
            if own_keys & wanted:
                owners[index] = len(own_keys & wanted)
        if len(owners) == 1:
            return next(iter(owners))
        keys = [assignment.key for assignment in self.assignments]
        if owners:
            several = ", ".join(keys[index] for index in owners)
            self.problems.add(key.place, f"{who}: {show(key.text)} is set by several tuples; name one of {several}")
        else:
            self.problems.add(key.place, f"{who}: no tuple sets {show(key.text)}{suggest(key.text, keys)}")
        return None

    def meant(self, short: str) -> str:
        """ "; did you mean switch.buffer?" for a parameter without its entity (swept ones first), or ""."""
        keys = sorted((len(a.texts) == 1, a.key) for a in self.assignments if a.param == short)
        return f"; did you mean {keys[0][1]}?" if keys else ""

    def _levels(self, index: int, node: Node, who: str) -> frozenset[int] | None:
        assignment = self.assignments[index]
        target = assignment.targets[0]
        if assignment.range:
            got = f"{assignment.key}, which is drawn from {assignment.range}"
            self.problems.add(node.place, f"{who}: want a tuple with a list of values; got {got}")
            return None
        levels: list[int] = []
        for item in node.items if isinstance(node, Sequence) else (node,):
            try:
                value = value_of(item, target.spec.type, self.files)
            except ValueError as error:
                self.problems.add(item.place, f"{who}: {error}")
                return None
            if value in target.values:
                levels.append(target.values.index(value))
            elif assignment.rank < OVERRIDE:
                self.problems.add(
                    item.place, f"{who}: want one of its values {', '.join(assignment.texts)}; got {what(item)}"
                )
                return None
        return frozenset(levels)
