# SPDX-License-Identifier: Apache-2.0
"""Removes exclusions, expectations and figures that refer to tuples left out by --without."""

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
    """left_out: the tuples named by --without; assignments: the remaining ones"""

    left_out: tuple[Assignment, ...]
    assignments: tuple[Assignment, ...]
    names: Names
    parameters: Parameters

    def kept(self, node: Node | None) -> tuple[Node | None, tuple[str, ...]]:
        """The list without items that refer to a tuple left out (None if empty), and the names of those items."""
        if not self.left_out or not isinstance(node, Sequence):
            return node, ()
        gone = [item for item in node.items if isinstance(item, Mapping) and self._about(item)]
        rest = tuple(item for item in node.items if item not in gone)
        return Sequence(node.place, rest) if rest else None, tuple(_name(item) for item in gone)

    def _about(self, item: Mapping) -> bool:
        """Whether the keys, conditions or axes of a mapping refer to a tuple that was left out."""
        keys = [key.text for key, _ in item.entries]
        for name in CONDITIONS:
            condition = item.get(name)
            keys += [key.text for key, _ in condition.entries] if isinstance(condition, Mapping) else []
        axes = [item.get(name) for name in AXES]
        keys += [axis.text for axis in axes if isinstance(axis, Scalar)]
        return any(self.is_left_out(word) for word in keys)

    def is_left_out(self, word: str) -> bool:
        """Whether ENTITY.PARAM is what only tuples left out set."""
        entity, _, param = word.partition(".")
        try:
            meant = targets_of(self.names, self.parameters, self.names.canonical(entity), param) if param else []
        except ValueError:  # no such entity or parameter: reported when the item is read
            return False
        nobody_sets = _keys(self.left_out) - _keys(self.assignments)
        return any(target.key in nobody_sets for target in meant)


_NAMES = ("name", "metric", "fails_with", "eventually", "always")


def _name(item: Mapping) -> str:
    """The name of an expectation, or its metric, failure or signal; "" for other items."""
    name = next((node for field in _NAMES if (node := item.get(field))), None)
    return name.text if isinstance(name, Scalar) else ""


def _keys(tuples: tuple[Assignment, ...]) -> set[tuple[str, str]]:
    return {target.key for written in tuples for target in written.targets}
