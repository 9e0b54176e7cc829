# SPDX-License-Identifier: Apache-2.0
"""Points that are drawn from ranges and lists of values: `design: {sample: 200}`.

A Sobol' sequence (Joe & Kuo 2008) with a random digital shift (Owen 1995): its points are spread evenly over each tuple
and over each pair.  The shift is a hash of the seed, and no generator of random numbers has a part in it, so that every
machine and version draws the same.  The points of a smaller sample are the first ones of a larger one.
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
    rows: dict[tuple[str, ...], Levels] = {}
    for number, shares in enumerate(_sobol(len(chosen), design)):
        drawn = dict(zip(chosen, shares, strict=True))
        listed = {index: int(share * space.sizes[index]) for index, share in drawn.items() if index not in ranges}
        levels = space.complete(listed)
        if levels is not None:
            texts = {index: range_.drawn(drawn[index]) for index, range_ in ranges.items()}
            rows.setdefault((*map(str, levels), *texts.values()), levels)
        if len(rows) == design.sample or number == MOST_DRAWN * design.sample:
            break
    if len(rows) < design.sample:
        got = f"{len(rows)} different ones of {MOST_DRAWN * design.sample} that were drawn"
        problems.add(place, f"design: sample: want {design.sample} points; got {got}")
        return tuple(assignments), ()
    columns = [list(column) for column in zip(*rows.values(), strict=True)]
    filled = list(assignments)
    for number, (index, range_) in enumerate(ranges.items(), start=len(assignments)):
        texts_drawn = [row[number] for row in rows]
        values = sorted(set(texts_drawn), key=range_.number)
        columns[index] = [values.index(text) for text in texts_drawn]
        filled[index] = _filled(assignments[index], values)
    return tuple(filled), tuple(zip(*columns, strict=True))


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
