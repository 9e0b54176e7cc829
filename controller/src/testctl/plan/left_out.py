# SPDX-License-Identifier: Apache-2.0
"""Parts of a plan that are about a tuple which --without left out: exclusions, expectations, figures."""

from __future__ import annotations

from dataclasses import dataclass

from testctl.plan.model import Assignment
from testctl.plan.names import Names
from testctl.plan.registry import Parameters
from testctl.plan.tuples import targets_of
from testctl.plan.yaml_reader import Mapping, Node, Scalar, Sequence

CONDITIONS = ("when", "than")
AXES = ("x", "by", "facet")


@dataclass(frozen=True)
class LeftOut:
    """left_out: the tuples that --without names; assignments: those that are left"""

    left_out: tuple[Assignment, ...]
    assignments: tuple[Assignment, ...]
    names: Names
    parameters: Parameters

    def kept(self, node: Node | None) -> tuple[Node | None, tuple[str, ...]]:
        """A list without the items that are about a tuple left out, None for an empty one, and the names of those."""
        if not self.left_out or not isinstance(node, Sequence):
            return node, ()
        gone = [item for item in node.items if isinstance(item, Mapping) and self._about(item)]
        rest = tuple(item for item in node.items if item not in gone)
        return Sequence(node.place, rest) if rest else None, tuple(_name(item) for item in gone)

    def _about(self, item: Mapping) -> bool:
        """Whether a mapping's own keys, those of its conditions or its axes name a tuple that was left out."""
        words = [key.text for key, _ in item.entries]
        for name in CONDITIONS:
            condition = item.get(name)
            words += [key.text for key, _ in condition.entries] if isinstance(condition, Mapping) else []
        axes = [item.get(name) for name in AXES]
        words += [axis.text for axis in axes if isinstance(axis, Scalar)]
        return any(self._is_left_out(word) for word in words)

    def _is_left_out(self, word: str) -> bool:
        entity, _, param = word.partition(".")
        try:
            meant = targets_of(self.names, self.parameters, self.names.canonical(entity), param) if param else []
        except ValueError:  # no such entity or parameter: who reads the item reports it
            return False
        nobody_sets = _keys(self.left_out) - _keys(self.assignments)
        return any(target.key in nobody_sets for target in meant)


def _name(item: Mapping) -> str:
    """That of an expectation, or its metric or failure; "" for other items."""
    found = item.get("name") or item.get("metric") or item.get("fails_with")
    return found.text if isinstance(found, Scalar) else ""


def _keys(tuples: tuple[Assignment, ...]) -> set[tuple[str, str]]:
    return {target.key for one in tuples for target in one.targets}
