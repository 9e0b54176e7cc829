# SPDX-License-Identifier: Apache-2.0
"""Change points: none where nothing changes, whatever the noise; the right ones where something does."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from testctl.compare import change_points
from testctl.compare.stats.change_points import ALPHA, ENOUGH, jumpavg_changes
from testctl.compare.stats.energy import energies, ranks_of
from testctl.compare.stats.modes import two_modes

from tools.measure_compare import NOISES, alarms, found

NOMINAL = 0.05
"""The bound of false alarms: ALPHA, and a margin for the variation of the estimate."""
SERIES = 150
AUTOCORRELATED = "autocorrelated, 0.3"

numbers = st.floats(-1e12, 1e12, allow_nan=False)
histories = st.lists(st.one_of(numbers, st.none(), st.just(math.nan), st.just(math.inf)), max_size=30)


@settings(deadline=None, max_examples=30)
@given(histories)
def test_indexes_are_those_of_numbers_and_ascend(values: list[float | None]) -> None:
    said = change_points(values)
    assert said == sorted(set(said))
    assert all(0 < index < len(values) for index in said)
    assert all(math.isfinite(values[index] or 0.0) and values[index] is not None for index in said)
    assert said == change_points(values)


@settings(deadline=None)
@given(numbers, st.integers(0, 40))
def test_what_never_moves_has_no_change(value: float, count: int) -> None:
    assert change_points([value] * count) == []
    assert change_points([value] * count, exact=False) == []


@given(st.lists(st.sampled_from([1.5, 2.5, None]), max_size=30))
def test_exact_histories_change_wherever_they_differ(values: list[float | None]) -> None:
    there = [(index, value) for index, value in enumerate(values) if value is not None]
    expected = [index for (_, before), (index, value) in itertools.pairwise(there) if value != before]
    assert change_points(values, exact=True) == expected


def test_a_deterministic_history_is_known_by_its_repetitions() -> None:
    assert change_points([1e9] * 4 + [0.99e9] * 2) == [4]
    assert change_points([0.25, 0.25, 0.25, 0.5]) == [3]
    assert change_points([0] * 9 + [3] + [0] * 5) == []  # a count is 0 again and again by chance


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(8, 20), st.integers(8, 20), st.sampled_from([-1, 1]))
@example(13, 8, 11, -1)  # the two highest of the lower values come first
@example(7088, 9, 15, 1)  # a misplaced step looks like neighbours that are alike
@example(9601, 12, 19, -1)  # two even samples look like two modes each
def test_a_clear_step_is_found_in_its_place(seed: int, before: int, after: int, sign: int) -> None:
    values = 1000 + np.random.default_rng(seed).uniform(-1, 1, before + after)
    values[before:] += sign * 20
    assert before in change_points(values)


def test_levels_in_a_row_are_all_found() -> None:
    generator = np.random.default_rng(4)
    values = np.concatenate([generator.normal(mean, 1, 20) for mean in (100, 110, 95)])
    assert change_points(values) == [20, 40]


def test_too_short_a_history_says_nothing() -> None:
    assert change_points([1.1, 1.2, 1.3, 1.15, 9.1, 9.2, 9.3, 9.15, 9.4]) == []
    assert ENOUGH == 10


@pytest.mark.parametrize("noise", [name for name in NOISES if name != "autocorrelated, 0.6"])
def test_false_alarms_stay_within_their_bound(noise: str) -> None:
    """Where runs do not depend on each other the rate is surely below the bound; else it is not surely above.

    So strong a correlation as 0.6 is left out: docs/comparison.md states what it costs.
    """
    hits = alarms(NOISES[noise], change_points, 24, SERIES)
    interval = scipy.stats.binomtest(hits, SERIES).proportion_ci(0.95)
    assert (interval.low if noise == AUTOCORRELATED else interval.high) <= NOMINAL
    assert scipy.stats.binomtest(hits, SERIES, ALPHA, alternative="greater").pvalue > 1e-3 or noise == AUTOCORRELATED


def test_jumpavg_alone_takes_two_modes_for_changes() -> None:
    noise = NOISES["two modes, half and half"]
    assert alarms(noise, jumpavg_changes, 24, 60) > 5 * max(1, alarms(noise, change_points, 24, 60))


@pytest.mark.parametrize(
    ("noise", "cv", "count", "power"),
    [
        ("gaussian", 0.005, 40, 0.9),
        ("heavy tail (t, 2 degrees of freedom)", 0.005, 40, 0.65),
        ("two modes, half and half", 0.005, 40, 0.7),
    ],
)
def test_one_per_cent_is_found_in_noise(noise: str, cv: float, count: int, power: float) -> None:
    hits = found(NOISES[noise], change_points, cv, count, 40)
    assert scipy.stats.binomtest(hits, 40, power, alternative="less").pvalue > 0.01


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=40))
def test_ranks_are_those_of_scipy(values: list[float]) -> None:
    assert ranks_of(np.array(values)).tolist() == scipy.stats.rankdata(values).tolist()


def test_the_energy_of_a_split_is_that_of_its_definition() -> None:
    values = np.random.default_rng(1).normal(size=(2, 9))
    for row, said in zip(values, energies(values, 2), strict=True):
        for split, energy in zip(range(2, 8), said, strict=True):
            x, y = row[:split], row[split:]
            parts = [np.abs(p[:, None] - q[None, :]).mean() for p, q in ((x, y), (x, x), (y, y))]
            m, n = len(x), len(y)
            assert energy == pytest.approx(m * n / (m + n) * (2 * parts[0] - parts[1] - parts[2]))


def test_modes_are_seen_where_there_are_two() -> None:
    generator = np.random.default_rng(1)
    one = [two_modes(generator.normal(100, 1, 20)) for _ in range(200)]
    assert sum(modes is not None for modes in one) <= 2
    two = two_modes(np.concatenate([generator.normal(100, 1, 15), generator.normal(120, 1, 5)]))
    assert two is not None
    assert (round(two.lower), round(two.upper), two.share) == (100, 120, 0.25)
