# SPDX-License-Identifier: Apache-2.0
"""Finds the range of a number in which a failure persists: galloping outwards, then bisection."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

GALLOP = 2
FAR = 4
"""A gap whose ends differ by more than this factor is halved on a logarithmic scale."""


@dataclass(frozen=True)
class Axis:
    """The values a number may have, in base units.

    value   fails
    step    resolution of the search
    hints   values to try first, such as those that the plan sweeps
    passes  values that are known to pass
    """

    value: int
    step: int
    least: int
    most: int
    hints: tuple[int, ...] = ()
    passes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Interval:
    """The range in which the failure persists.

    least, most   the lowest and highest value that failed, with nothing that passed between
    below, above  the nearest values that passed; None: none was found on that side
    """

    least: int
    most: int
    below: int | None = None
    above: int | None = None


def interval(axis: Axis, probes: int) -> Generator[int, bool, Interval]:
    """Yields values to try and is sent whether each fails; at most `probes` upwards, and as many downwards."""
    most, above = yield from _edge(axis, probes, up=True)
    least, below = yield from _edge(axis, probes, up=False)
    return Interval(least, most, below, above)


def _edge(axis: Axis, probes: int, *, up: bool) -> Generator[int, bool, tuple[int, int | None]]:
    """The last value that fails on one side, and the first that passes (None: none was found)."""
    fails, passes = axis.value, _nearest(axis.passes, axis.value, up)
    for _ in range(probes):
        ask = _outwards(axis, fails, up) if passes is None else _between(fails, passes, axis.step)
        if ask is None:
            break
        if (yield ask):
            fails = ask
        else:
            passes = ask
    return fails, passes


def _nearest(values: tuple[int, ...], start: int, up: bool) -> int | None:
    beyond = [value for value in values if (value > start if up else value < start)]
    return (min(beyond) if up else max(beyond)) if beyond else None


def _outwards(axis: Axis, start: int, up: bool) -> int | None:
    """The next hint, or twice or half the value; None beyond the limits."""
    hint = _nearest(axis.hints, start, up)
    if hint is not None:
        return hint
    far = max(start * GALLOP, start + axis.step) if up else start // GALLOP
    round_ = _rounded(far, axis.step)
    far = min(max(round_ if round_ not in (0, start) else far, axis.least), axis.most)
    return far if far != start and (far > start) == up else None


def _between(a: int, b: int, step: int) -> int | None:
    """A multiple of `step` about midway, strictly between; None when there is none."""
    low, high = sorted((a, b))
    middle = math.isqrt(low * high) if low > 0 and high > FAR * low else (low + high) // 2
    near = _rounded(middle, step)
    for value in (near, near - step, near + step):
        if low < value < high and value > 0:
            return value
    return None


def _rounded(value: int, step: int) -> int:
    return (value + step // 2) // step * step
