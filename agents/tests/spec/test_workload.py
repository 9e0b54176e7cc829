# SPDX-License-Identifier: Apache-2.0
"""Requests that are drawn: they come as a Poisson process, and have the sizes of the distribution."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from testctl_agent.spec import workload

COUNT = 10_000
RATE = 2500.0
LEVEL_1_PERCENT = 1.6276
"""Kolmogorov's limit: of samples of the distribution one in 100 has a larger deviation times √n."""


def deviation(sample: Sequence[float], cdf: Callable[[float], float]) -> float:
    """The Kolmogorov-Smirnov statistic, times √n."""
    ordered = sorted(sample)
    n = len(ordered)
    most = max(max((i + 1) / n - cdf(x), cdf(x) - i / n) for i, x in enumerate(ordered))
    return most * math.sqrt(n)


def cdf_of(distribution: workload.Distribution) -> Callable[[float], float]:
    """Of sizes in whole bytes, half a byte of which rounding may have moved."""

    def share(size: float) -> float:
        sizes, shares = distribution.sizes, distribution.shares
        for a, b, low, high in zip(sizes, sizes[1:], shares, shares[1:], strict=False):
            if size <= b:
                return low + (high - low) * (size - a) / (b - a) if b > a else high
        return 1.0

    return share


def drawn(sizes: str, rate: float = RATE, stream: str = "1 web") -> tuple[workload.Request, ...]:
    return workload.requests({"requests": COUNT, "sizes": sizes, "arrival_rate": rate}, stream)


@pytest.mark.parametrize("name", ["websearch", "datamining"])
def test_times_and_sizes_are_those_of_the_distributions_at_1_percent(name: str) -> None:
    """Kolmogorov-Smirnov, of intervals against the exponential distribution and of sizes against the table."""
    distribution = workload.named(name)
    found = drawn(str(distribution))
    times = [0, *(one.at_ns for one in found)]
    intervals = [(b - a) / 1e9 for a, b in pairwise(times)]
    assert deviation(intervals, lambda x: 1 - math.exp(-x * RATE)) < LEVEL_1_PERCENT
    assert deviation(intervals, lambda x: 1 - math.exp(-x * RATE * 1.05)) > LEVEL_1_PERCENT
    sizes = [one.up for one in found]
    assert deviation(sizes, cdf_of(distribution)) < LEVEL_1_PERCENT
    assert deviation([size * 1.1 for size in sizes], cdf_of(distribution)) > LEVEL_1_PERCENT
    assert [one.conn for one in found] == list(range(COUNT))


def test_sizes_fall_into_the_table_s_classes_as_often_as_it_says() -> None:
    """Chi-square over the classes between the points of keyvalue, whose small sizes are whole bytes: 1 %."""
    distribution = workload.named("keyvalue")
    sizes = [one.up for one in drawn(str(distribution))]
    ends = list(zip(distribution.sizes, distribution.shares, strict=True))
    ends = [(size, share) for size, share in ends if size in {0, 100, 168, 321, 757, 1132, 2446, 10**6}]
    total = 0.0
    for (low, below), (high, share) in pairwise(ends):
        expected = (share - below) * COUNT
        total += (sum(low < size <= high for size in sizes) - expected) ** 2 / expected
    assert total < 16.81  # 6 degrees of freedom


def test_the_same_stream_is_drawn_again_and_another_is_another() -> None:
    sizes = str(workload.named("websearch"))
    assert drawn(sizes)[:3] == (
        workload.Request(647303, 0, 2772), workload.Request(1448495, 1, 152818), workload.Request(2051159, 2, 1562826),
    )  # fmt: skip
    other = drawn(sizes, stream=workload.stream_of(1, "other", {}))
    assert other[:3] != drawn(sizes)[:3] == drawn(sizes, stream=workload.stream_of(1, "w", {"draw": "web"}))[:3]


def test_answers_take_turns_on_connections_after_a_time_to_think() -> None:
    options = {"requests": COUNT, "sizes": "5000:1", "think": 10**7, "connections": 40, "reverse": True}
    found = workload.requests(options, "1 rpc")
    assert workload.connections(options) == 40
    assert [one.conn for one in found[:80]] == [*range(40), *range(40)]
    assert {(one.up, one.down) for one in found} == {(workload.REQUEST_SIZE, 5000)}
    paused = [one.at_ns for one in found[:40]] + [one.think_ns for one in found[40:]]
    assert deviation(paused, lambda x: 1 - math.exp(-x / 1e7)) < LEVEL_1_PERCENT
    assert all((one.at_ns == 0) == (number >= 40) for number, one in enumerate(found))


def test_a_query_is_several_requests_at_one_time() -> None:
    options = {"requests": 5, "fanout": 3, "sizes": "1:0.1 5000:1", "arrival_rate": 10.0}
    found = workload.requests(options, "1 query")
    assert [one.conn for one in found] == list(range(15))
    assert len({one.at_ns for one in found}) == 5 == len({one.at_ns for one in found[::3]})
    assert len({one.up for one in found}) > 10


def test_chunks_come_every_so_often() -> None:
    found = workload.requests({"requests": 4, "sizes": "1:0.1 5000:1", "arrival_rate": 0.5, "every": 2 * 10**9}, "1 tv")
    assert [one.at_ns for one in found] == [0, 2 * 10**9, 4 * 10**9, 6 * 10**9]
    assert len({one.up for one in found}) == 4


def test_the_mean_is_that_of_the_lines_between_the_points() -> None:
    assert workload.parse("0B:0 1kB:0.5 3kB:1").mean == 0.5 * 500 + 0.5 * 2000
    assert workload.fixed(20_000).mean == 20_000 == workload.fixed(20_000).quantile(0.999)
    atom = workload.parse("1kB:0.25 1kB:0.5 2kB:1")
    assert (atom.mean, atom.quantile(0.4), atom.quantile(1)) == (0.5 * 1000 + 0.5 * 1500, 1000, 2000)
    for name in workload.names():
        found = workload.named(name)
        assert workload.parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1000 0.2\n2000 0.9\n", "2: want a distribution that ends with share 1; got 0.9 at 2000 bytes"),
        ("# none\n\n", "1: want at least one size and its share; got none"),
        ("1kB 0.2\n\n900B 1\n", "3: want sizes that do not fall; got 900 after 1000"),
        ("1kB 0.5\n2kB 0.4\n3kB 1\n", "2: want shares that do not fall; got 0.4 after 0.5"),
        ("1kB 50\n", "1: want a share from 0 to 1; got '50'"),
        ("1kB nan\n", "1: want a share from 0 to 1; got 'nan'"),
        ("1kB\n", "1: want a size and a share, such as 10kB 0.15; got '1kB'"),
        ("0 1\n", "1: want a largest size of at least 1 byte; got 0"),
        ("-5 1\n", "1: want a size such as 30kB, 64KiB or 1MB; got '-5'"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(f'line {why}')}$"):
        workload.read(text.encode())
