# SPDX-License-Identifier: Apache-2.0
"""Losses at a rate: the same in every run, and like independent draws."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from testctl_agent.spec.fate import parse
from testctl_agent.spec.loss import draw, is_lost, loss, lost, rule_of

COUNT = 1_000_000
RATE = 1e-3


@pytest.fixture(scope="module")
def hits() -> list[int]:
    return list(lost(loss(1, RATE, 3), COUNT))


def test_is_the_same_in_every_run() -> None:
    rule = loss(1, 1e-2, 3)
    assert (rule.most, rule.salts) == (42949672, (909628734, 3629755515, 3130298918))
    assert list(lost(rule, 500)) == [52, 249, 316, 404, 436, 495]


def test_lies_within_three_standard_errors(hits: list[int]) -> None:
    assert abs(len(hits) - COUNT * RATE) <= 3 * math.sqrt(COUNT * RATE * (1 - RATE))


def test_gaps_are_geometric(hits: list[int]) -> None:
    """Chi-square over 20 classes of equal probability, 19 degrees of freedom, at 0.999."""
    gaps = [b - a for a, b in pairwise(hits)]
    classes = [0] * 20
    chances = [0.0] * 20
    for gap in range(1, 20_000):
        middle = 1 - (1 - RATE) ** (gap - 1) + RATE * (1 - RATE) ** (gap - 1) / 2
        chances[int(20 * middle)] += RATE * (1 - RATE) ** (gap - 1)
    for gap in gaps:
        classes[int(20 * (1 - (1 - RATE) ** (gap - 1) + RATE * (1 - RATE) ** (gap - 1) / 2))] += 1
    expected = [len(gaps) * chance for chance in chances]
    assert sum((n - want) ** 2 / want for n, want in zip(classes, expected, strict=True)) < 43.82


@pytest.mark.parametrize("lag", [1, 2, 3, 4, 8, 16, 64, 256, 1024])
def test_draws_are_not_correlated_with_later_ones(lag: int) -> None:
    rule = loss(7, 0.5, 11)
    bits = [is_lost(rule, n) for n in range(1, 20_001 + lag)]
    same = sum(a == b for a, b in zip(bits, bits[lag:], strict=False))
    assert abs(same - 10_000) < 4 * math.sqrt(20_000 * 0.25)


@pytest.mark.parametrize(("other_flow", "other_seed"), [(1, 4), (3, 3), (2, 3), (1, 3 + 2**32)])
def test_other_seeds_and_flows_draw_independently(other_flow: int, other_seed: int) -> None:
    mine, other = loss(1, 0.5, 3), loss(other_flow, 0.5, other_seed)
    same = sum(is_lost(mine, n) == is_lost(other, n) for n in range(1, 20_001))
    assert abs(same - 10_000) < 4 * math.sqrt(20_000 * 0.25)


@pytest.mark.parametrize(("rate", "burst"), [(0.01, 4.0), (0.2, 1.0), (0.5, 50.0)])
def test_bursts_have_the_rate_and_the_length_asked_for(rate: float, burst: float) -> None:
    count = 200_000
    gone = list(lost(loss(3, rate, 5, burst), count))
    bursts = 1 + sum(later - earlier > 1 for earlier, later in pairwise(gone))
    # Both are means of the chain; its variance is that of independent losses times about 2 * burst.
    spread = 4 * math.sqrt(count * rate * (1 - rate) * 2 * burst)
    assert abs(len(gone) - count * rate) < spread
    assert abs(len(gone) / bursts - burst) < 4 * burst / math.sqrt(bursts)
    assert (burst == 1.0) == (len(gone) == bursts)


def test_packets_to_be_delayed_are_drawn_apart_from_those_to_be_lost() -> None:
    one, other = (rule_of(parse(text)[0], 1) for text in ("lose 0.5 of b seed 3", "reorder 0.5 of b by 1ms seed 3"))
    same = sum(is_lost(one, n) == is_lost(other, n) for n in range(1, 20_001))
    assert abs(same - 10_000) < 4 * math.sqrt(20_000 * 0.25)


def test_rate_1_loses_all() -> None:
    assert list(lost(loss(1, 1.0, 0), 5)) == [1, 2, 3, 4, 5]


def test_a_draw_has_32_bits_and_ordinals_wrap() -> None:
    rule = loss(1, 2.0**-32, 0)
    assert rule.most == 0
    assert 0 <= draw(rule, 2**32 - 1) < 2**32


@pytest.mark.parametrize(
    ("rate", "seed"), [(0.0, 0), (1.1, 0), (-0.1, 0), (1e-11, 0), (float("nan"), 0), (0.1, -1), (0.1, 2**64)]
)
def test_what_is_refused(rate: float, seed: int) -> None:
    with pytest.raises(ValueError, match=r"want a (rate|seed) from"):
        loss(1, rate, seed)
