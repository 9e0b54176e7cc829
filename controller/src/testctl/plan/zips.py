# SPDX-License-Identifier: Apache-2.0
"""Reads `zip`: swept tuples whose values belong together, the n-th of one to the n-th of the other."""

from __future__ import annotations

from testctl.plan.conditions import Reader
from testctl.plan.diagnostics import show
from testctl.plan.left_out import LeftOut
from testctl.plan.tuples import OVERRIDE
from testctl.plan.yaml_reader import Node, Scalar, Sequence, what

_SHAPE = "a list of lists of swept tuples, such as [[switch.rate, switch.delay]]"


def read_zips(node: Node | None, reader: Reader, remaining: LeftOut) -> tuple[tuple[int, ...], ...]:
    """The indexes of the tuples of each group.

    Tuples that --without leaves out, or to which --set gives one value, are in no group.
    """
    problems = reader.problems
    groups: list[tuple[int, ...]] = []
    if node is None:
        return ()
    if not isinstance(node, Sequence):
        problems.add(node.place, f"zip: want {_SHAPE}; got {what(node)}")
        return ()
    for item in node.items:
        if not isinstance(item, Sequence) or len(item.items) < 2:
            problems.add(item.place, f"zip: want {_SHAPE}; got {what(item)}")
            continue
        group: list[int] = []
        for key in item.items:
            if not isinstance(key, Scalar):
                problems.add(key.place, f"zip: want ENTITY.PARAM of a tuple; got {what(key)}")
                continue
            if remaining.is_left_out(key.text):
                continue
            index = reader.tuple_of(key, "zip")
            if index is None:
                continue
            assignment = reader.assignments[index]
            if index in group or any(index in other for other in groups):
                problems.add(key.place, f"zip: want every tuple once; got {show(key.text)} again")
            elif assignment.range:
                problems.add(key.place, f"zip: want tuples with lists of values; got {assignment.key}, which is drawn "
                                        f"from {assignment.range}")  # fmt: skip
            elif len(assignment.texts) > 1 or assignment.rank < OVERRIDE:
                group.append(index)
        sizes = {reader.assignments[index].key: len(reader.assignments[index].texts) for index in group}
        if len(set(sizes.values())) > 1:
            texts = ", ".join(f"{count} of {key}" for key, count in sizes.items())
            problems.add(item.place, f"zip: want equally many values; got {texts}")
        elif len(group) > 1:
            groups.append(tuple(sorted(group)))
    return tuple(groups)
