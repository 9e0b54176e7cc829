# SPDX-License-Identifier: Apache-2.0
"""From the counters of some arcs of a function to how often each arc and block was executed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testctl.coverage.notes import Function

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Executed:
    """How often, for each of several runs.  blocks: (blocks, runs); arcs: (arcs, runs), in the function's order."""

    blocks: Counts
    arcs: Counts


def executed(function: Function, counters: Counts) -> Executed:
    """What follows from the counters: as much goes into a block as leaves it.

    counters: (counted arcs, runs).  The arcs without a counter are a tree, so each block but one leaf at a time has a
    single unknown arc (Knuth and Stevenson, 1973).
    """
    arcs = np.zeros((len(function.arcs), counters.shape[1]), np.int64)
    known = np.array([arc.counted for arc in function.arcs], bool)
    arcs[known] = counters
    into: list[list[int]] = [[] for _ in range(function.blocks)]
    out: list[list[int]] = [[] for _ in range(function.blocks)]
    for index, arc in enumerate(function.arcs):
        out[arc.source].append(index)
        into[arc.target].append(index)
    blocks = np.zeros((function.blocks, counters.shape[1]), np.int64)
    solved = [False] * function.blocks
    waiting = list(range(function.blocks))
    while waiting:
        block = waiting.pop()
        ends = [side for side in (into[block], out[block]) if side]
        unknown = [[index for index in side if not known[index]] for side in ends]
        if not solved[block]:
            if (whole := next((side for side, left in zip(ends, unknown, strict=True) if not left), None)) is None:
                continue
            blocks[block] = arcs[whole].sum(axis=0)
            solved[block] = True
        for side, left in zip(ends, unknown, strict=True):
            if len(left) == 1:
                arcs[left[0]] = blocks[block] - arcs[[index for index in side if index != left[0]]].sum(axis=0)
                known[left[0]] = True
                waiting += [function.arcs[left[0]].source, function.arcs[left[0]].target]
    return Executed(blocks, arcs)
