# SPDX-License-Identifier: Apache-2.0
"""Fewer points keep the picture: every extreme stays."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from testctl.curves.core.thin import envelope


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.integers(4, 400), st.integers(0, 2**32 - 1))
def test_the_envelope_is_small_and_keeps_extremes_and_ends(count: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    t = np.sort(rng.integers(0, 10_000, count))
    y = rng.normal(size=count)
    kept = envelope(t, y, most)
    assert len(kept) <= max(most, 4)
    assert (np.diff(kept) > 0).all()
    assert y[kept].max() == y.max()
    assert y[kept].min() == y.min()
    assert t[kept[0]] == t[0]
    assert t[kept[-1]] == t[-1]


def test_a_spike_of_one_point_survives() -> None:
    y = np.zeros(100_000)
    y[54_321] = 7
    assert 54_321 in envelope(np.arange(100_000), y, 400)


def test_nothing_and_one_instant() -> None:
    assert len(envelope(np.empty(0), np.empty(0), 10)) == 0
    assert len(envelope(np.zeros(1000), np.arange(1000), 8)) <= 4
