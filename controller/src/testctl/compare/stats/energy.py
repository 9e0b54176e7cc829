# SPDX-License-Identifier: Apache-2.0
"""Does a sequence change its distribution somewhere?  An energy statistic over ranks, judged by permutation: seeded.

For every split the energy distance (Székely and Rizzo) between the parts before and after is computed, as in Matteson
and James's E-divisive, but of ranks: two distant modes, or a tail, then count only by their share of the values.  The
largest of all splits is compared with the largest of permuted sequences, so testing every split needs no correction:
without a change, p is at most alpha in a share alpha of sequences, for any distribution.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DRAWS = 999
ENOUGH = 15
"""Drawing stops after this many permutations with a statistic as large as the sequence's (Besag and Clifford)."""
_BATCH = 200
_ROUNDING = 1e-9

Floats = npt.NDArray[np.float64]


def ranks_of(values: Floats) -> Floats:
    """Ranks from 1; equal values get the mean of their ranks."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = (last - (counts - 1) / 2)[codes]
    return ranks


def energies(sequences: Floats, least: int) -> Floats:
    """The energy statistic of each row for the splits least, least + 1, …, n - least."""
    rows, count = sequences.shape
    earlier, to_all = np.empty((rows, count)), np.empty((rows, count))
    for index in range(count):
        apart = np.abs(sequences - sequences[:, index : index + 1])
        earlier[:, index], to_all[:, index] = apart[:, :index].sum(1), apart.sum(1)
    split = np.arange(least, count - least + 1)
    # Sums of the distances within what is before, and from there to all.
    before, upto = 2 * earlier.cumsum(1)[:, split - 1], to_all.cumsum(1)
    total, upto = upto[:, -1:], upto[:, split - 1]
    across, after = upto - before, total - 2 * upto + before
    m, n = split, count - split
    energy: Floats = m * n / count * (2 * across / (m * n) - before / m**2 - after / n**2)
    return energy


def strongest_split(values: Floats, least: int, seed: int) -> tuple[int, float]:
    """(index at which the second level would begin, p of the split).  Needs at least 2 * least values."""
    ranks = ranks_of(values)
    split = energies(ranks[None], least)[0]
    generator = np.random.default_rng([seed, len(values)])
    as_good = drawn = 0
    while drawn < DRAWS and as_good < ENOUGH:
        rows = min(_BATCH if drawn else _BATCH // 4, DRAWS - drawn)
        permuted = generator.permuted(np.tile(ranks, (rows, 1)), axis=1)
        as_good += int((energies(permuted, least).max(axis=1) >= split.max() - _ROUNDING).sum())
        drawn += rows
    return int(split.argmax()) + least, (as_good + 1) / (drawn + 1)
