# SPDX-License-Identifier: Apache-2.0
"""What failing points share: counts that are true, and conditions that are found."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from testctl.plan.failures import LEAST, MOST, Shared, Values, in_words, shared_values

CCS, DELAYS, BUFFERS = ("cubic", "reno", "bbr"), ("1ms", "3ms", "10ms", "30ms"), ("15kB", "60kB")
POINTS: list[Values] = [
    {"cc": cc, "delay": delay, "buffer": buffer} for cc, delay, buffer in itertools.product(CCS, DELAYS, BUFFERS)
]


def conditions(found: Sequence[Shared]) -> list[str]:
    return [one.text for one in found]


def test_one_value() -> None:
    failed = [point["delay"] == "30ms" for point in POINTS]
    assert conditions(shared_values(POINTS, failed)) == ["all 6 with delay=30ms"]
    assert in_words(POINTS, failed) == "all 6 with delay=30ms"


def test_a_value_and_what_the_others_share() -> None:
    failed = [p["delay"] == "30ms" or (p["cc"] == "reno" and p["delay"] in ("10ms", "3ms")) for p in POINTS]
    assert in_words(POINTS, failed) == "all 6 with delay=30ms; of the other 18, 4 of 6 with cc=reno"


def test_a_pair_of_values() -> None:
    failed = [point["cc"] == "bbr" and point["buffer"] == "15kB" for point in POINTS]
    assert in_words(POINTS, failed) == "all 4 with cc=bbr and buffer=15kB"


def test_what_a_value_does_not_cover_is_counted() -> None:
    failed = [point["delay"] == "30ms" for point in POINTS]
    failed[0] = True
    assert in_words(POINTS, failed) == "all 6 with delay=30ms; 1 more"


def test_nothing_is_shared_by_all_by_one_or_by_none() -> None:
    for failed in ([True] * 24, [False] * 24, [index == 3 for index in range(24)]):
        assert shared_values(POINTS, failed) == []
        assert in_words(POINTS, failed) == ""
    assert shared_values([], []) == []


def test_failures_that_are_spread_evenly_share_nothing() -> None:
    points: list[Values] = [{"a": str(n % 2), "b": str(n // 2 % 2)} for n in range(16)]
    assert shared_values(points, [n < 8 for n in range(16)]) == []


verdicts = st.lists(st.booleans(), min_size=24, max_size=24)
some_points = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("123"), st.booleans()), max_size=40
)


@given(some_points)
def test_every_count_is_true_and_better_than_saying_nothing(rows: list[tuple[str, str, str, bool]]) -> None:
    points: list[Values] = [{"p": p, "q": q, "r": r} for p, q, r, _ in rows]
    failed = [fails for *_, fails in rows]
    found = shared_values(points, failed)
    assert len(found) <= MOST
    left = list(zip(points, failed, strict=True))
    for one in found:
        mine = [fails for point, fails in left if all(point[name] == value for name, value in one.condition)]
        before, all_failed = len(left), sum(fails for _, fails in left)
        assert (one.failed, one.points, one.of) == (sum(mine), len(mine), before)
        assert one.failed >= LEAST
        assert one.failed / one.points > all_failed / before
        left = [(p, fails) for p, fails in left if not all(p[name] == value for name, value in one.condition)]


@given(verdicts, st.randoms(use_true_random=False))
def test_the_order_of_points_does_not_matter(failed: list[bool], shuffled: random.Random) -> None:
    both = list(zip(POINTS, failed, strict=True))
    shuffled.shuffle(both)
    again = shared_values([point for point, _ in both], [fails for _, fails in both])
    assert again == shared_values(POINTS, failed)


@given(st.sampled_from([("cc", CCS), ("delay", DELAYS), ("buffer", BUFFERS)]), st.data())
def test_a_value_that_explains_all_is_found_alone(parameter: tuple[str, tuple[str, ...]], data: st.DataObject) -> None:
    name, values = parameter
    value = data.draw(st.sampled_from(values))
    (found,) = shared_values(POINTS, [point[name] == value for point in POINTS])
    assert found.condition == ((name, value),)
    assert found.failed == found.points


@given(st.sampled_from(CCS), st.sampled_from(DELAYS))
def test_a_pair_that_explains_all_is_found_alone(cc: str, delay: str) -> None:
    (found,) = shared_values(POINTS, [(point["cc"], point["delay"]) == (cc, delay) for point in POINTS])
    assert found.condition == (("cc", cc), ("delay", delay))
    assert found.failed == found.points == 2
