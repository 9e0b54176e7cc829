# SPDX-License-Identifier: Apache-2.0
"""Whether values have two modes, and which is of which.

A mode may be where a host's memory or interrupts happened to land.  Means of such values move when the share of
the modes does, and their variance hides a change within them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testctl.compare.stats.energy import Floats

LEAST = 8
"""Values below which nothing is said of modes."""
APART = 4.0
"""How far modes are apart, as Ashman's D; clear from 2 on, but the best cut of one normal mode already has 2.7."""
SHARE = 0.1
"""Of the values, what the smaller mode has at least (and never a single one)."""
ROUNDINGS = 8
"""In units of the largest value's last place: what a subtraction and a change of unit may have rounded."""
MUCH_BETTER = 10.0
"""By how much two modes must improve on one: Kass and Raftery's "very strong" difference of BIC."""


@dataclass(frozen=True)
class Modes:
    """Two modes: the values from `cut` on are of the upper."""

    cut: float
    lower: float
    upper: float
    share: float  # of the values, those of the upper


def two_modes(values: Floats) -> Modes | None:
    """The two modes of values; None where one describes them as well."""
    count = len(values)
    if count < LEAST:
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
    """The values, each relative to the median of its mode; those apart by no more than rounding are made equal."""
    found: Floats = values - np.where(values >= modes.cut, modes.upper, modes.lower)
    order = np.argsort(found)
    ordered = found[order]
    apart = np.diff(ordered, prepend=-np.inf) > ROUNDINGS * np.spacing(np.abs(values).max())
    found[order] = ordered[apart][apart.cumsum() - 1]
    return found


def _bic(*groups: Floats) -> float:
    """Of values that are each in a normal mode of its own mean, all of one variance, and its own share."""
    count = sum(len(group) for group in groups)
    variance = max(sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / count, 1e-300)
    shares = sum(len(group) * float(np.log(len(group) / count)) for group in groups)
    parameters = 2 * len(groups)
    return count * float(np.log(variance)) - 2 * shares + parameters * float(np.log(count))
