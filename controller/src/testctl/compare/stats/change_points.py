# SPDX-License-Identifier: Apache-2.0
"""Finds the runs at which the history of one number begins a new level.

A permutation test (compare.stats.energy) at ALPHA over the whole history decides whether there is a change; the parts
before and after it are then tested in the same way.  There are three special cases:

two modes     the values are also tested relative to their modes, so that the distance between the modes does not hide
              a change within them; both tests share ALPHA
autocorrelation  on many testbeds neighbouring runs are similar, which is no change; if the values around their levels
              are correlated, the residuals of a first-order autoregression must also pass the test
exact         on a deterministic testbed a number repeats exactly, and every difference is a change

If both sides have one mode, or no value in common, FD.io's jumpavg (minimum description length) determines the exact
run; alone it mistakes the alternation of two modes for changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from testctl.compare.stats.energy import Floats, strongest_split
from testctl.compare.stats.modes import two_modes, within_modes

ALPHA = 0.01
"""The share of false alarms in histories without a change, if runs are independent."""
MIN = 3
"""Minimum number of values in a level."""
ENOUGH = 10
"""Minimum number of values: with fewer no test can reach ALPHA.  Five and five are in order by chance once in 126
times, and one of all splits is chosen."""
NEAR = 6
"""Denominator of the part of a history by which ranks may misplace a change between fully separated values."""
_NOTICED = 1.2
"""Autocorrelation, in units of 1 / sqrt(n), above which it is removed."""
_MAX = 0.95
_COUNTS = 1000
"""Whole numbers below this repeat by chance (drops, timeouts); larger ones and fractions do not."""


def change_points(values: Sequence[float | None] | Floats, *, exact: bool | None = None, seed: int = 1) -> list[int]:
    """Indexes of `values` at which a new level begins, ascending; never 0.

    None, NaN and infinite values are ignored.  exact: every difference is a change (a deterministic testbed);
    None: decide from the values: exact if at least half of the neighbours are equal to the last bit.
    """
    numbers = np.array([math.nan if value is None else float(value) for value in values], dtype=float)
    place = np.flatnonzero(np.isfinite(numbers))
    kept = numbers[place]
    changes = _steps(kept) if (looks_exact(kept) if exact is None else exact) else _levels(kept, 0, seed)
    return [int(place[index]) for index in changes]


def looks_exact(values: Floats) -> bool:
    """Whether values repeat exactly, as only those of a deterministic testbed do."""
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
    """The strongest change of one history; None if there is none at ALPHA."""
    modes = two_modes(values)
    tested = [values] if modes is None else [values, within_modes(values, modes)]
    alpha = ALPHA / len(tested)
    splits = []
    for part in tested:
        at, p = strongest_split(part, MIN, seed)
        if p > alpha:
            continue
        # jumpavg gives the index: by ranks, the first low values after a drop may be the highest low ones.
        near = [place for place in jumpavg_changes(part) if _better(part, place, at)]
        at = min(near, key=lambda place: abs(place - at)) if near else at
        if _independent_of_neighbours(part, at, alpha, seed):
            splits.append((p, at))
    return min(splits)[1] if splits else None


def _independent_of_neighbours(values: Floats, at: int, alpha: float, seed: int) -> bool:
    """Whether a change remains after the correlation of neighbours is removed."""
    around = np.concatenate([values[:at] - values[:at].mean(), values[at:] - values[at:].mean()])
    square = float(around @ around)
    if square == 0:
        return True
    count = len(values)
    seen = float(around[1:] @ around[:-1]) / square
    # Both means were subtracted, each from about half of the values: Kendall's bias, -(1 + 3 phi) / n, twice.
    phi = min(seen + (2 + 6 * seen) / count, _MAX)
    if phi * count**0.5 < _NOTICED:
        return True
    _, p = strongest_split(values[1:] - phi * values[:-1], MIN, seed)
    return p <= alpha


def _better(values: Floats, place: int, at: int) -> bool:
    """Whether a change near `at` may be at `place` instead: a change of levels, not an alternation of modes."""
    before, after = values[:place], values[place:]
    if before.max() < after.min() or after.max() < before.min():
        return abs(place - at) <= max(MIN, len(values) // NEAR)
    return abs(place - at) < MIN and not (two_modes(before) or two_modes(after))


def jumpavg_changes(values: Sequence[float] | Floats) -> list[int]:
    """The changes by FD.io's jumpavg alone; its model needs values above zero, so lower ones are shifted."""
    import jumpavg  # type: ignore[import-untyped]

    numbers = np.asarray(values, dtype=float)
    if len(numbers) < 2 or float(np.ptp(numbers)) == 0:
        return []
    shifted = numbers - min(float(numbers.min()), 0.0)
    groups = jumpavg.classify([float(value) for value in shifted])
    changes, at = [], 0
    for group in list(groups)[:-1]:
        at += len(group.run_list)
        changes.append(at)
    return changes
