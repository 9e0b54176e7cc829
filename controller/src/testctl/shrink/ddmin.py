# SPDX-License-Identifier: Apache-2.0
"""Delta debugging: the smallest part of a list that still fails, by trying what can be left out.

Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002, section 3.2.
It differs from their ddmin in two ways: parts smaller than a half are left out but never tried alone,
and after a success the next part is tried before the first again.  Neither changes the guarantees.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
Kept = tuple[T, ...]


def ddmin(items: Sequence[T], width: int = 1) -> Generator[list[Kept[T]], list[bool], Kept[T]]:
    """Yields at most `width` selections to try, is sent whether each fails, and returns the smallest.

    All items together are taken to fail.  The result fails, and is 1-minimal: it passes without any one of its
    items, whatever the failure depends on.  It takes at most n² + 3n selections of n items.
    """
    left = tuple(items)
    if not left or (yield [()])[0]:
        return ()
    parts, first = 2, 0
    while len(left) > 1:
        chunks = split(len(left), parts)
        order = [(first + number) % len(chunks) for number in range(len(chunks))]
        without = [tuple(item for at, item in enumerate(left) if at not in chunks[number]) for number in order]
        hit = yield from first_failing(without, width)
        if hit is not None:
            left, first, parts = without[hit], order[hit], max(parts - 1, 2)
            first %= parts
        elif parts >= len(left):
            break
        else:
            parts, first = min(2 * parts, len(left)), 0
    return left


def first_failing(selections: Sequence[Kept[T]], width: int = 1) -> Generator[list[Kept[T]], list[bool], int | None]:
    """Try them in order, `width` at once, until one fails; its index."""
    for start in range(0, len(selections), width):
        for number, fails in enumerate((yield list(selections[start : start + width]))):
            if fails:
                return start + number
    return None


def split(count: int, parts: int) -> list[range]:
    """`count` indexes split into ranges whose lengths differ by at most one."""
    edges = [count * number // parts for number in range(parts + 1)]
    return [range(a, b) for a, b in itertools.pairwise(edges) if b > a]


R = TypeVar("R")


def drive(search: Generator[list[Kept[T]], list[bool], R], fails: Callable[[list[Kept[T]]], list[bool]]) -> R:
    """Run a search to its end with a function that tests selections."""
    try:
        request = next(search)
        while True:
            request = search.send(fails(request))
    except StopIteration as end:
        result: R = end.value
        return result
