# SPDX-License-Identifier: Apache-2.0
"""Points that are drawn from ranges and lists of values: `design: {sample: 200}`.

A Sobol' sequence (Joe & Kuo 2008) with a random digital shift (Owen 1995): its points are even in each tuple and in each
pair.  The shift is a hash of the seed, not of a generator of random numbers, so that another version or machine draws the
same.  The points of a smaller sample are the first ones of a larger one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from testctl.plan.diagnostics import Place, Problems
from testctl.plan.model import Assignment, Condition, Design, Levels
from testctl.plan.space import Space
from testctl.plan.tuples import value_of
from testctl.plan.yaml_reader import Scalar

_BITS = 30
MOST_DRAWN = 64
"""Points drawn for one that is neither excluded nor there already."""


def draw(
    assignments: Sequence[Assignment],
    excludes: Sequence[Condition],
    zips: Sequence[Sequence[int]],
    design: Design,
    place: Place,
    problems: Problems,
) -> tuple[tuple[Assignment, ...], tuple[Levels, ...]]:
    """The tuples with the values that were drawn from their ranges, and the points.

    place  of the design
    """
    space = Space([1 if a.range else len(a.texts) for a in assignments], excludes, zips)
    ranges = {index: a.range for index, a in enumerate(assignments) if a.range}
    chosen = sorted({*space.factors, *ranges})
    if not chosen:
        problems.add(place, "design: sample: want a tuple with a range or several values; got none")
        return tuple(assignments), ()
    texts: dict[tuple[str | int, ...], Levels] = {}
    for number, shares in enumerate(_sobol(len(chosen), design)):
        drawn = dict(zip(chosen, shares, strict=True))
        row = tuple(
            range_.drawn(drawn[index]) if (range_ := ranges.get(index)) else int(drawn[index] * space.sizes[index])
            for index in chosen
        )
        levels = space.complete({index: int(level) for index, level in zip(chosen, row, strict=True) if index not in ranges})
        if levels is not None:
            texts.setdefault(row, levels)
        if len(texts) == design.sample or number == MOST_DRAWN * design.sample:
            break
    if len(texts) < design.sample:
        problems.add(place, f"design: sample: want at most {len(texts)}, as many different points were drawn; "
                            f"got {design.sample}")  # fmt: skip
    rows = [list(levels) for levels in texts.values()]
    filled = list(assignments)
    for index, range_ in ranges.items():
        column = [str(row[chosen.index(index)]) for row in texts]
        values = sorted(dict.fromkeys(column), key=range_.number)
        level = {text: at for at, text in enumerate(values)}
        for row, text in zip(rows, column, strict=True):
            row[index] = level[text]
        filled[index] = _filled(assignments[index], values)
    return tuple(filled), tuple(tuple(row) for row in rows)


def _filled(assignment: Assignment, values: Sequence[str]) -> Assignment:
    place = assignment.places[0]
    nodes = [Scalar(place, text, True) for text in values]
    targets = tuple(
        replace(target, values=tuple(value_of(node, target.spec.type) for node in nodes))
        for target in assignment.targets
    )
    return replace(assignment, texts=tuple(values), targets=targets, places=(place,) * len(values))


def _sobol(dimensions: int, design: Design) -> Iterator[list[Fraction]]:
    """Points of the unit cube."""
    from scipy.stats import qmc  # type: ignore[import-untyped]

    shifts = [
        int.from_bytes(hashlib.sha256(f"{design.seed} {number}".encode()).digest()[:4], "big") >> 2
        for number in range(dimensions)
    ]
    engine = qmc.Sobol(dimensions, scramble=False, bits=_BITS)
    power = max(design.sample - 1, 1).bit_length()
    for more in (power, *range(power, _BITS)):  # each doubles the number of points
        for point in engine.random_base2(more):
            yield [Fraction(int(x * 2**_BITS) ^ shift, 2**_BITS) for x, shift in zip(point, shifts, strict=True)]
