# SPDX-License-Identifier: Apache-2.0
"""Two samples: exact p values, honest intervals, and a stated number of samples below which there is no verdict."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testctl.compare.stats.two_samples import (
    LEVEL,
    adjusted,
    cliffs_delta,
    compare_samples,
    least_p,
    least_samples,
    permutation_p,
    shift_of,
)

from tools.measure_compare import NOISES, families, pairs

values = st.lists(st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 3)), min_size=2, max_size=7)


@settings(deadline=None, max_examples=30)
@given(values, values)
def test_p_is_a_probability_and_does_not_depend_on_who_comes_first(a: list[float], b: list[float]) -> None:
    one, other = compare_samples(a, b), compare_samples(b, a)
    assert 0 < one.p <= 1
    assert one.p == pytest.approx(other.p)
    assert one.effect == -other.effect
    assert -1 <= one.effect <= 1
    if one.interval is not None:
        assert one.interval[0] <= one.shift <= one.interval[1]


@settings(deadline=None, max_examples=40)
@given(values, st.floats(0.001, 1000), st.floats(-1000, 1000))
@example([0.0, 0.0, -32178.0, -22350.0, -32178.0], 1.3063686696911248, 0.0)  # equal but for rounding, within a mode
def test_p_does_not_depend_on_the_unit(a: list[float], scale: float, shift: float) -> None:
    b = [value + index for index, value in enumerate(a)]
    moved = [[scale * value + shift for value in side] for side in (a, b)]
    assert compare_samples(a, a).p > LEVEL
    assert compare_samples(*moved).p == pytest.approx(compare_samples(a, b).p, abs=0.05)


def test_the_exact_p_is_that_of_scipy() -> None:
    generator = np.random.default_rng(2)
    for shift in (0.0, 1.0, 3.0):
        x, y = generator.normal(0, 1, 5), generator.normal(shift, 2, 6)

        def welch(x: object, y: object, axis: int) -> object:
            return np.abs(scipy.stats.ttest_ind(x, y, equal_var=False, axis=axis).statistic)

        ranks = scipy.stats.rankdata([*x, *y])
        said = scipy.stats.permutation_test(
            (ranks[:5], ranks[5:]), welch, n_resamples=10**6, alternative="greater"
        ).pvalue
        assert permutation_p(x, y, 1) == pytest.approx(said)


def test_samples_apart_have_the_least_p() -> None:
    assert compare_samples([1, 2, 3, 4], [10, 11, 12, 13]).p == pytest.approx(least_p(4, 4)) == pytest.approx(2 / 70)
    assert compare_samples([5.0] * 4, [6.0] * 4).p == pytest.approx(4 / 70)  # two modes, doubled
    assert compare_samples([1e12, 1e12 + 1, 1e12 + 2], [1e12 + 9, 1e12 + 8, 1e12 + 7]).p == pytest.approx(0.1)
    assert compare_samples([1.0], [2.0]).p == 1.0
    assert compare_samples([3.0] * 5, [3.0] * 5).p == 1.0


def test_the_interval_of_a_shift_holds_it_in_95_of_100() -> None:
    generator = np.random.default_rng(3)
    for draw in (generator.normal, lambda *size: generator.standard_t(2, size[2])):
        held = 0
        for _ in range(400):
            _shift, interval = shift_of(draw(0, 1, 6), draw(0, 1, 8) + 2)
            assert interval is not None
            held += interval[0] <= 2 <= interval[1]
        assert scipy.stats.binomtest(held, 400, 0.95, alternative="less").pvalue > 0.01
    assert shift_of(np.array([1.0, 2.0, 3.0]), np.array([5.0])) == (3.0, None)


@given(st.integers(1, 10_000))
def test_the_number_of_samples_that_is_stated_is_enough_and_no_less_is(comparisons: int) -> None:
    count = least_samples(comparisons)
    assert 4 / math.comb(2 * count, count) <= LEVEL / comparisons
    assert 4 / math.comb(2 * count - 2, count - 1) > LEVEL / comparisons


def test_delta_counts_pairs() -> None:
    assert cliffs_delta(np.array([1.0, 2.0]), np.array([2.0, 3.0])) == 0.75


def test_the_correction_keeps_order_and_makes_nothing_smaller() -> None:
    ps = [0.01, 0.04, 0.03, 0.9]
    assert adjusted(ps) == pytest.approx([0.04, 0.16 / 3, 0.16 / 3, 0.9])
    assert adjusted([]) == []


def test_two_modes_are_compared_as_mixtures() -> None:
    generator = np.random.default_rng(5)
    a, b = (np.tile([100.0, 120.0], 6) + generator.normal(0, 0.5, 12) for _ in range(2))
    assert compare_samples(a, b).p > LEVEL
    shifted = compare_samples(a, b + 2)
    assert shifted.p < LEVEL  # 2 %, far less than the 10 % that the values spread
    assert shifted.modes is not None
    assert scipy.stats.ttest_ind(a, b + 2).pvalue > 0.5
    assert compare_samples(a, np.concatenate([b[1::2], b[1::2] + 0.1])).p < LEVEL  # only one of the modes is left


@pytest.mark.parametrize("noise", [name for name in NOISES if not name.startswith("auto")])
def test_false_alarms_stay_within_their_bound(noise: str) -> None:
    """Of comparisons of nothing with nothing not surely more than LEVEL are alarms, alone and in families."""
    alone = pairs(NOISES[noise], 0.01, 5, 0.0, 200)
    assert scipy.stats.binomtest(alone, 200, LEVEL, alternative="greater").pvalue > 0.01
    together = families(NOISES[noise], 5, 5, 40)
    assert scipy.stats.binomtest(together, 40, LEVEL, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize(("cv", "count", "power"), [(0.005, 10, 0.95), (0.01, 20, 0.7)])
def test_one_per_cent_is_found_in_noise(cv: float, count: int, power: float) -> None:
    hits = pairs(NOISES["gaussian"], cv, count, 0.01, 40)
    assert scipy.stats.binomtest(hits, 40, power, alternative="less").pvalue > 0.01
