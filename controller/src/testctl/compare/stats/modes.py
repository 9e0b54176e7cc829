# SPDX-License-Identifier: Apache-2.0
"""Decides whether values have two modes, and assigns values to modes.

Modes may come from the placement of a host's memory or interrupts.  The mean of such values changes with the share
of the modes, and their variance hides a change within a mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.compare.stats.energy import Floats

MIN = 8
"""Minimum number of values for a decision about modes."""
APART = 4.0
"""Minimum distance of modes as Ashman's D.  Modes are separate from 2 on; the best cut of one normal mode has 2.7."""
SHARE = 0.1
"""Minimum share of the values in the smaller mode (which also needs more than one value)."""
ROUNDINGS = 8
"""Maximum rounding error of a subtraction and a unit conversion, in units of the largest value's last place."""
MUCH_BETTER = 10.0
"""Minimum improvement of two modes over one: Kass and Raftery's "very strong" difference of BIC."""


@dataclass(frozen=True)
class Modes:
    """Two modes: values from `cut` on belong to the upper one."""

    cut: float
    lower: float
    upper: float
    share: float  # of the values in the upper mode


def two_modes(values: Floats) -> Modes | None:
    """The two modes of values; None if one mode describes them as well."""
    count = len(values)
    if count < MIN:
        return None
    ordered = np.sort(values)
    sizes = np.arange(1, count)
    heads = ordered.cumsum()[:-1]
    low = heads / sizes
    high = (ordered.sum() - heads) / (count - sizes)
    # Otsu's cut: the least variance within both sides is the most between them.
    at = int((sizes * (count - sizes) * (high - low) ** 2).argmax()) + 1
    below, above = ordered[:at], ordered[at:]
    if min(len(below), len(above)) < max(2, SHARE * count):
        return None
    within = float(below.var() + above.var())
    between = float(above.mean() - below.mean())
    if between <= 0 or 2**0.5 * between < APART * within**0.5:
        return None
    if within > 0 and _bic(ordered) - _bic(below, above) < MUCH_BETTER:
        return None
    return Modes(float(above[0]), float(np.median(below)), float(np.median(above)), len(above) / count)


def within_modes(values: Floats, modes: Modes) -> Floats:
    """The values, each relative to the median of its mode; values that differ only by rounding are made equal."""
    residuals: Floats = values - np.where(values >= modes.cut, modes.upper, modes.lower)
    order = np.argsort(residuals)
    ordered = residuals[order]
    apart = np.diff(ordered, prepend=-np.inf) > ROUNDINGS * np.spacing(np.abs(values).max())
    residuals[order] = ordered[apart][apart.cumsum() - 1]
    return residuals


def _bic(*groups: Floats) -> float:
    """BIC of groups of values: each group is a normal mode with its own mean and share; the variance is common."""
    count = sum(len(group) for group in groups)
    variance = max(sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / count, 1e-300)
    shares = sum(len(group) * float(np.log(len(group) / count)) for group in groups)
    parameters = 2 * len(groups)
    return count * float(np.log(variance)) - 2 * shares + parameters * float(np.log(count))
