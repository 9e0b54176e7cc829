# SPDX-License-Identifier: Apache-2.0
"""Compares two samples of one number: is there a difference, how large is it, and are the samples enough?  Seeded.

The test is a permutation test of Welch's t of ranks.  The distribution of a few samples is unknown, and a permutation
test is exact for any distribution; ranks keep a tail from hiding a change (Brunner and Munzel; Neubert and Brunner
2007) and lose little power without one.  If all values together have two modes, the energy statistics of the modes'
shares and of the ranks within modes are tested instead, and the smaller p is doubled: this compares mixtures, not
means.
Hodges and Lehmann's shift and Cliff's delta give the size.  Benjamini and Hochberg's method corrects many comparisons.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from testctl.compare.stats.energy import Floats, ranks_of
from testctl.compare.stats.modes import Modes, two_modes, within_modes

LEVEL = 0.05
"""The allowed share of false alarms among comparisons with the verdict "changed"."""
CONFIDENCE = 0.95
EXACT = 20_000
"""Up to this number all permutations are computed."""
DRAWS = 9_999
"""Otherwise this many are drawn, or more if many comparisons need a smaller p."""
ENOUGH = 20
"""Drawing stops after this many permutations with a statistic as large as the samples'."""
_BATCH = 20_000
_TINY = 1e-24
_ROUNDING = 1e-9

Statistic = Callable[[Floats, Floats], Floats]
"""(rows of zeros and ones that select values, values) → the distance of the two sides, for each row."""


@dataclass(frozen=True)
class Tested:
    """Two samples compared.

    counts    number of values of each
    means     of each; also medians
    shift     shift of b from a, and its 95 % interval; None with too few values
    p         p value; least_p is the smallest that this number of samples can have
    effect    Cliff's delta, from -1 (all of b below all of a) to 1
    modes     the two modes, if there are any, and the share of the upper mode in a and in b
    """

    counts: tuple[int, int]
    means: tuple[float, float]
    medians: tuple[float, float]
    shift: float
    interval: tuple[float, float] | None
    p: float
    least_p: float
    effect: float
    modes: tuple[float, float, float, float] | None


def compare_samples(a: Sequence[float], b: Sequence[float], seed: int = 1, comparisons: int = 1) -> Tested:
    """Compare two non-empty samples.  comparisons: how many are made in total, which sets the precision of p."""
    draws = max(DRAWS, math.ceil(4 * comparisons / LEVEL))
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    # The choice of the test must not depend on which sample has which value, or p would not be exact.  A clear change
    # looks like two modes too, and is also detected.
    pooled = two_modes(np.concatenate([x, y]))
    modes = two_modes(x) or two_modes(y)
    return Tested(
        (len(x), len(y)),
        (float(x.mean()), float(y.mean())),
        (float(np.median(x)), float(np.median(y))),
        *shift_of(x, y),
        mixtures_p(x, y, pooled, seed, draws) if pooled else permutation_p(x, y, seed, draws),
        min(1.0, least_p(len(x), len(y)) * (2 if pooled else 1)),
        cliffs_delta(x, y),
        (modes.lower, modes.upper, float((x >= modes.cut).mean()), float((y >= modes.cut).mean())) if modes else None,
    )


def least_p(a: int, b: int) -> float:
    """The smallest p of a permutation test: two of all ways to choose a of a + b values."""
    return min(1.0, 2 / math.comb(a + b, a))


def least_samples(comparisons: int, level: float = LEVEL) -> int:
    """Samples per side that are needed to detect one change among so many comparisons, also with two modes."""
    count = 2
    while 2 * least_p(count, count) > level / max(comparisons, 1):
        count += 1
    return count


def shift_of(x: Floats, y: Floats) -> tuple[float, tuple[float, float] | None]:
    """The shift of y from x by Hodges and Lehmann, and Moses's 95 % interval.

    The shift is the median of all differences of pairs; quantiles of Mann and Whitney's U give the interval's ends.
    """
    from scipy import stats  # type: ignore[import-untyped]

    n, m = len(x), len(y)
    apart = np.sort((y[None, :] - x[:, None]).ravel())
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    outside = round(n * m / 2 - z * (n * m * (n + m + 1) / 12) ** 0.5)
    # With too few values even all pairs do not reach 95 %: there is no interval.
    interval = (float(apart[outside - 1]), float(apart[-outside])) if outside >= 1 and min(n, m) > 3 else None
    return float(np.median(apart)), interval


def cliffs_delta(x: Floats, y: Floats) -> float:
    """P(y > x) - P(y < x) over all pairs."""
    return float(np.sign(y[None, :] - x[:, None]).mean())


def permutation_p(x: Floats, y: Floats, seed: int, draws: int = DRAWS) -> float:
    """Two-sided p of the permutation test of Welch's t of ranks."""
    ranks = ranks_of(np.concatenate([x, y]))
    return _p(ranks - ranks.mean(), len(x), _welch, seed, draws)


def mixtures_p(x: Floats, y: Floats, modes: Modes, seed: int, draws: int) -> float:
    """p of the energy statistics of the modes' shares and of the values within the modes."""
    both = np.concatenate([x, y])
    tested = [(both >= modes.cut).astype(float), ranks_of(within_modes(both, modes))]
    return min(1.0, 2 * min(_p(statistic, len(x), _energy, seed, draws) for statistic in tested))


def _p(values: Floats, first: int, statistic: Statistic, seed: int, draws: int) -> float:
    """The share of permutations whose first `first` values and the rest are at least as far apart as the samples."""
    count = len(values)
    if min(first, count - first) < 2 or float(np.ptp(values)) == 0:
        return 1.0
    came = np.zeros((1, count))
    came[0, :first] = 1
    least = float(statistic(came, values)[0]) * (1 - _ROUNDING)
    if math.comb(count, first) <= EXACT:
        # Every way to choose `first` of `count`: one row of zeros and ones each.
        ways = np.array(list(itertools.combinations(range(count), first)))
        masks = np.zeros((len(ways), count))
        np.put_along_axis(masks, ways, 1.0, axis=1)
        statistics = statistic(masks, values)
        return float((statistics >= least).mean())
    generator = np.random.default_rng([seed, count, first])
    drawn = as_far = 0
    while drawn < draws and as_far < ENOUGH:
        rows = min(_BATCH if drawn else 999, draws - drawn)
        statistics = statistic(generator.permuted(np.tile(came, (rows, 1)), axis=1), values)
        as_far, drawn = as_far + int((statistics >= least).sum()), drawn + rows
    return (as_far + 1) / (drawn + 1)


def _welch(chosen: Floats, values: Floats) -> Floats:
    """|t| of each row's selected values against the others; very large if neither varies and the means differ."""
    sides = [(chosen.sum(1), chosen @ values, chosen @ values**2)]
    sides.append((len(values) - sides[0][0], values.sum() - sides[0][1], (values**2).sum() - sides[0][2]))
    square = sum(np.maximum(squares - total**2 / n, 0) / (n - 1) / n for n, total, squares in sides)
    (n, total, _), (m, rest, _) = sides
    t: Floats = np.abs(total / n - rest / m) / np.sqrt(np.maximum(square, _TINY))
    return t


def _energy(chosen: Floats, values: Floats) -> Floats:
    """The energy distance of each row's chosen values and the others."""
    apart = np.abs(values[:, None] - values[None, :])
    n, others = chosen.sum(1), 1 - chosen
    m = len(values) - n
    near = chosen @ apart
    across, within = (near * others).sum(1), (near * chosen).sum(1)
    rest = apart.sum() - 2 * across - within
    distance: Floats = 2 * across / (n * m) - within / n**2 - rest / m**2
    return distance


def adjusted(ps: Sequence[float]) -> list[float]:
    """p values corrected for their number, by Benjamini and Hochberg."""
    from scipy import stats

    return [float(p) for p in stats.false_discovery_control(ps)] if ps else []
