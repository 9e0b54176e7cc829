#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often comparisons are wrong: false alarms where nothing changed, and changes that are found.

    .venv/bin/python tools/measure_compare.py [--series N] [--what history|samples] [--run DIR]

Seeded; the figures of docs/comparison.md are its output.  --run takes a finished run in wall-clock time with many
repetitions and compares these with each other: an A/A comparison of real samples.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from testctl.compare.comparability import deterministic, open_run
from testctl.compare.samples import Cell, cells_of, metrics_of
from testctl.compare.stats.change_points import change_points, jumpavg_changes
from testctl.compare.stats.two_samples import LEVEL, adjusted, compare_samples

Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]
Detector = Callable[[Floats], Sequence[int]]
MEAN = 100.0
CHANGE = 0.01
"""The change that is injected: 1 %."""


def autoregressive(phi: float) -> Noise:
    """Neighbours are correlated by phi."""

    def noise(generator: np.random.Generator, count: int) -> Floats:
        drawn = generator.normal(size=count + 50)
        for index in range(1, len(drawn)):
            drawn[index] += phi * drawn[index - 1]
        found: Floats = drawn[50:] * (1 - phi**2) ** 0.5
        return found

    return noise


def modes(share: float) -> Noise:
    """A second mode 20 standard deviations away, with this share of the values."""
    return lambda generator, count: np.where(generator.random(count) < share, 20.0, 0.0) + generator.normal(size=count)


NOISES: dict[str, Noise] = {
    "gaussian": lambda generator, count: generator.normal(size=count),
    "heavy tail (t, 2 degrees of freedom)": lambda generator, count: generator.standard_t(2, size=count),
    "skewed (lognormal)": lambda generator, count: np.exp(generator.normal(size=count)),
    "two modes, half and half": modes(0.5),
    "two modes, 1 in 5": modes(0.2),
    "autocorrelated, 0.3": autoregressive(0.3),
    "autocorrelated, 0.6": autoregressive(0.6),
}
"""Noise of unit scale."""


def alarms(noise: Noise, detector: Detector, count: int, series: int, seed: int = 1) -> int:
    """Of series without a change, in how many the detector sees one."""
    generator = np.random.default_rng(seed)
    return sum(bool(detector(MEAN + noise(generator, count))) for _ in range(series))


def found(noise: Noise, detector: Detector, cv: float, count: int, series: int, seed: int = 1) -> int:
    """Of series whose mean moves by CHANGE in the middle, in how many a change is seen within 3 runs of there."""
    generator = np.random.default_rng(seed)
    hits = 0
    for _ in range(series):
        values = MEAN * (1 + cv * noise(generator, count))
        values[count // 2 :] += MEAN * CHANGE
        hits += any(abs(index - count // 2) <= 3 for index in detector(values))
    return hits


def pair_p(noise: Noise, cv: float, count: int, change: float, generator: np.random.Generator) -> float:
    """p of two samples of so many values, the second moved."""
    a, b = (MEAN * (1 + cv * noise(generator, count)) for _ in range(2))
    return compare_samples(list(a), list(b + MEAN * change)).p


def pairs(noise: Noise, cv: float, count: int, change: float, tries: int, seed: int = 1) -> int:
    """Of pairs of samples, how many are called different, each on its own."""
    generator = np.random.default_rng(seed)
    return sum(pair_p(noise, cv, count, change, generator) <= LEVEL for _ in range(tries))


def families(noise: Noise, count: int, size: int, tries: int, seed: int = 1) -> int:
    """Of families of `size` comparisons without any change, corrected together, how many have an alarm."""
    generator = np.random.default_rng(seed)
    hits = 0
    for _ in range(tries):
        ps = [pair_p(noise, 0.01, count, 0.0, generator) for _ in range(size)]
        hits += min(adjusted(ps)) <= LEVEL
    return hits


def real(run: Path, count: int) -> dict[str, tuple[int, int]]:
    """{what: (alarms, comparisons)} among the repetitions of a run.

    Of 2 * count in a row every other is compared with the rest, so that none
    is in two comparisons of a metric.  Constant metrics are left out: they could be no alarm.
    """
    opened = open_run(run)
    if deterministic(opened):
        raise SystemExit(f"{run}: want a run in wall-clock time; in the lab repetitions are the same")
    alone = [0, 0]
    whole = [0, 0]
    for cell in cells_of([opened], [opened]):
        for start in range(0, len(cell.a) - 2 * count + 1, 2 * count):
            part = cell.a[start : start + 2 * count]
            ps = _ps(Cell(cell.tuples, part[::2], part[1::2]))
            alone = [alone[0] + sum(p <= LEVEL for p in ps), alone[1] + len(ps)]
            whole = [whole[0] + (min(adjusted(ps), default=1.0) <= LEVEL), whole[1] + 1]
    return {"comparisons, each on its own": (alone[0], alone[1]), "points, corrected": (whole[0], whole[1])}


def _ps(cell: Cell) -> list[float]:
    found = []
    for name in metrics_of(cell):
        a, b = cell.values(0, name), cell.values(1, name)
        if min(len(a), len(b)) >= 2 and np.ptp([*a, *b]) > 0:
            found.append(compare_samples(a, b).p)
    return found


def rate(hits: int, tries: int) -> str:
    """As a share with its 95 % interval (Clopper and Pearson)."""
    from scipy import stats  # type: ignore[import-untyped]

    interval = stats.binomtest(hits, tries).proportion_ci(0.95)
    return f"{hits / tries:6.1%}  ({interval.low:.1%} to {interval.high:.1%}, {hits} of {tries})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--series", type=int, default=400, help="series or pairs behind each figure")
    parser.add_argument("--run", type=Path, help="a run in wall-clock time with many repetitions")
    parser.add_argument("--samples", type=int, default=10, help="of each side of an A/A comparison of --run")
    parser.add_argument("--what", choices=("history", "samples"), default="", help="only these")
    asked = parser.parse_args()
    many: int = asked.series
    if asked.run:
        for what, (hits, tries) in real(asked.run, asked.samples).items():
            print(f"A/A, real samples, {what}: {rate(hits, tries)}")
        return
    if asked.what in ("", "history"):
        _histories(many)
    if asked.what in ("", "samples"):
        _samples(many)


def _histories(many: int) -> None:
    for count in (20, 40):
        for name, noise in NOISES.items():
            ours, theirs = alarms(noise, change_points, count, many), alarms(noise, jumpavg_changes, count, many)
            print(f"history of {count}, no change, {name}: {rate(ours, many)}; jumpavg alone {theirs / many:.0%}")
    for name, noise in NOISES.items():
        for cv, count in ((0.005, 20), (0.005, 40), (0.01, 40)):
            hits = found(noise, change_points, cv, count, many)
            print(f"history of {count}, 1 % change, noise {cv:.1%}, {name}: {rate(hits, many)}")


def _samples(many: int) -> None:
    for name, noise in list(NOISES.items())[:5]:
        print(f"two samples of 10, no change, {name}: {rate(pairs(noise, 0.01, 10, 0.0, many), many)}")
        print(f"20 comparisons of 10, corrected, {name}: {rate(families(noise, 10, 20, many // 4), many // 4)}")
        for cv, count in ((0.005, 10), (0.01, 10), (0.01, 20), (0.01, 30)):
            hits = pairs(noise, cv, count, CHANGE, many)
            print(f"two samples of {count}, 1 % change, noise {cv:.1%}, {name}: {rate(hits, many)}")


if __name__ == "__main__":
    main()
