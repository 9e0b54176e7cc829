# SPDX-License-Identifier: Apache-2.0
"""The spread of samples, and its excess when several points run at once.  Pure and seeded.

Intervals are percentiles of 2000 bootstrap samples.  What is drawn again are whole rounds, since points that ran
at once are not independent.  With few rounds such an interval is too narrow rather than too wide.
(scipy.stats.bootstrap draws single values: docs/adr/0008.)
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DRAWS = 2000
MIN = 1e-3
"""Lower limit of a spread, relative to the mean: smaller differences are ignored."""

Rounds = Sequence[Sequence[float]]
"""The values of each round: one where a point ran alone, else one for each that ran at once."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """cv: standard deviation over mean; None where the mean is 0."""

    count: int
    mean: float
    cv: float | None
    cv_95: tuple[float, float] | None


@dataclass(frozen=True)
class Excess:
    """The ratio of the spread with others (about the mean alone) to the spread alone, with its interval."""

    ratio: float
    ratio_95: tuple[float, float]


def _flat(rounds: Rounds) -> Floats:
    return np.array([value for values in rounds for value in values], dtype=float)


def _generator(seed: int, what: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(what.encode())])


def _drawn(rounds: Rounds, generator: np.random.Generator) -> Floats:
    return _flat([rounds[i] for i in generator.integers(0, len(rounds), len(rounds))])


def _cv(values: Floats) -> float:
    mean = abs(float(values.mean()))
    return float(values.std(ddof=1)) / mean if mean and len(values) > 1 else 0.0


def spread(rounds: Rounds, seed: int, what: str) -> Spread:
    """Of the values; `what` names them, so that each name has random numbers of its own."""
    values = _flat(rounds)
    mean = float(values.mean())
    if mean == 0:
        return Spread(len(values), mean, None, None)
    generator = _generator(seed, what)
    draws = [_cv(_drawn(rounds, generator)) for _ in range(DRAWS)]
    return Spread(len(values), mean, _cv(values), _interval(draws))


def excess(alone: Rounds, beside: Rounds, seed: int, what: str) -> Excess:
    """The excess of the spread with others over the spread alone.

    The spread with others is about the mean alone, so that a shift of the mean counts as well.
    """
    generator = _generator(seed, what)
    draws = [_ratio(_drawn(alone, generator), _drawn(beside, generator)) for _ in range(DRAWS)]
    return Excess(_ratio(_flat(alone), _flat(beside)), _interval(draws))


def _ratio(alone: Floats, beside: Floats) -> float:
    mean = float(alone.mean())
    off = float(np.sqrt(np.mean((beside - mean) ** 2)))
    if mean == 0:
        return 1.0 if off == 0 else off / MIN
    return max(off / abs(mean), MIN) / max(_cv(alone), MIN)


def _interval(draws: Sequence[float]) -> tuple[float, float]:
    low, high = np.percentile(draws, [2.5, 97.5])
    return float(low), float(high)
