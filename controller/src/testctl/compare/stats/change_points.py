# SPDX-License-Identifier: Apache-2.0
"""Where a history of one number begins a new level.

Whether there is a change says a permutation test (compare.stats.energy) at ALPHA over the whole history; what is
before and after is then looked at in the same way.  Three things are treated on their own:

two modes     the values are also tested relative to their modes, where a change within modes is not hidden by
              the distance between them; ALPHA is shared by both tests
autocorrelation  runs next to each other are alike on many testbeds, which is no change; where the values around their
              levels are correlated, the test must also be passed by what a first-order autoregression leaves
exact         on a deterministic testbed a number repeats to its last bit, and every difference is a change

Where both sides have one mode, or no value in common, FD.io's jumpavg (least description length) says at which run
exactly; alone it takes the alternation of two modes for changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from testctl.compare.stats.energy import Floats, strongest_split
from testctl.compare.stats.modes import two_modes, within_modes

ALPHA = 0.01
"""Of histories without a change, the share in which one is found, where runs do not depend on each other."""
LEAST = 3
"""Values that a level has at least."""
ENOUGH = 10
"""Values below which no test can reach ALPHA: five and five may be in order by chance once in 126 times, and
of all splits one is chosen."""
NEAR = 6
"""Of a history, the part by which ranks may misplace a change between values that are all above others."""
_NOTICED = 1.2
"""Autocorrelation, in units of 1 / sqrt(n), from which on it is taken off."""
_MOST = 0.95
_COUNTS = 1000
"""Whole numbers below this repeat by chance (drops, timeouts); larger ones and fractions do not."""


def change_points(values: Sequence[float | None] | Floats, *, exact: bool | None = None, seed: int = 1) -> list[int]:
    """Indexes of `values` at which a new level begins, ascending; never 0.

    None, NaN and infinite values are passed over.  exact: every difference is a change (a deterministic testbed);
    None: as the values look, that is when half of the neighbours, or more, are equal to the last bit.
    """
    numbers = np.array([math.nan if value is None else float(value) for value in values], dtype=float)
    place = np.flatnonzero(np.isfinite(numbers))
    kept = numbers[place]
    found = _steps(kept) if (looks_exact(kept) if exact is None else exact) else _levels(kept, 0, seed)
    return [int(place[index]) for index in found]


def looks_exact(values: Floats) -> bool:
    """Whether values repeat as only a deterministic testbed's do."""
    if len(values) < 2:
        return False
    telling = (np.abs(values) >= _COUNTS) | (values != np.round(values))
    same = (values[1:] == values[:-1]) & telling[1:]
    return bool(2 * same.sum() >= len(same))


def _steps(values: Floats) -> list[int]:
    return [int(index) + 1 for index in np.flatnonzero(values[1:] != values[:-1])]


def _levels(values: Floats, start: int, seed: int) -> list[int]:
    """Changes within values[start:], by bisection."""
    split = first_change(values, seed) if len(values) >= ENOUGH else None
    if split is None:
        return []
    return [
        *_levels(values[:split], start, seed),
        start + split,
        *_levels(values[split:], start + split, seed),
    ]


def first_change(values: Floats, seed: int) -> int | None:
    """The clearest change of one history; None where there is none at ALPHA."""
    modes = two_modes(values)
    tested = [values] if modes is None else [values, within_modes(values, modes)]
    alpha = ALPHA / len(tested)
    splits = []
    for one in tested:
        at, p = strongest_split(one, LEAST, seed)
        if p > alpha:
            continue
        at = _exactly(one, at)
        if _independent_of_neighbours(one, at, alpha, seed):
            splits.append((p, at))
    return min(splits)[1] if splits else None


def _independent_of_neighbours(values: Floats, at: int, alpha: float, seed: int) -> bool:
    """Whether a change is still there after the correlation of neighbours was taken off."""
    around = np.concatenate([values[:at] - values[:at].mean(), values[at:] - values[at:].mean()])
    square = float(around @ around)
    if square == 0:
        return True
    count = len(values)
    seen = float(around[1:] @ around[:-1]) / square
    # Both means were taken off, each from about half of the values: Kendall's bias, -(1 + 3 phi) / n, twice.
    phi = min(seen + (2 + 6 * seen) / count, _MOST)
    if phi * count**0.5 < _NOTICED:
        return True
    _, p = strongest_split(values[1:] - phi * values[:-1], LEAST, seed)
    return p <= alpha


def _exactly(values: Floats, at: int) -> int:
    """jumpavg's place of a change near `at`.

    Ranks alone don't tell where: of a clear fall, the first lower values may happen to be the highest of the lower.
    """
    near = [place for place in jumpavg_changes(values) if _better(values, place, at)]
    return min(near, key=lambda place: abs(place - at)) if near else at


def _better(values: Floats, place: int, at: int) -> bool:
    """Whether a change near `at` may rather be at `place`: it is one of levels there, not of modes that take turns."""
    before, after = values[:place], values[place:]
    if before.max() < after.min() or after.max() < before.min():
        return abs(place - at) <= max(LEAST, len(values) // NEAR)
    return abs(place - at) < LEAST and not (two_modes(before) or two_modes(after))


def jumpavg_changes(values: Sequence[float] | Floats) -> list[int]:
    """What FD.io's jumpavg says alone; its model wants values above zero, so that lower ones are shifted."""
    import jumpavg  # type: ignore[import-untyped]

    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2 or float(np.ptp(numbers)) == 0:
        return []
    shifted = numbers - min(float(numbers.min()), 0.0)
    groups = jumpavg.classify([float(value) for value in shifted])
    found, at = [], 0
    for group in list(groups)[:-1]:
        at += len(group.run_list)
        found.append(at)
    return found
