# SPDX-License-Identifier: Apache-2.0
"""The points that differ between two kernels, in groups by cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from testctl_agent.spec.types import shown

from testctl.compare.deltas import Move, change_words, value_words
from testctl.compare.exact import Comparison, Difference, compare_runs
from testctl.releases.cause import Cause, cause
from testctl.releases.entries import LABELS, Entry
from testctl.report.metrics import KEY_METRICS
from testctl.results import Run, RunPoint

METRICS = 3
"""Metrics of a group that are shown."""
_KEY = {metric for metric, _ in KEY_METRICS}


@dataclass(frozen=True)
class Differing:
    """A point of two runs that differs.  entry: its label and reason, where the file has one."""

    plan: str
    old: RunPoint
    new: RunPoint
    difference: Difference
    cause: Cause
    entry: Entry | None

    @property
    def tuples(self) -> frozenset[str]:
        return frozenset(f"{entity}.{name}={shown(value)}" for entity, name, value in self.old.tuples)


@dataclass(frozen=True)
class Compared:
    """A plan on two neighbouring kernels."""

    plan: str
    between: tuple[str, str]
    runs: tuple[Run, Run]
    comparison: Comparison
    points: tuple[Differing, ...]


@dataclass(frozen=True)
class Group:
    """Points that differ for one cause: all of an entry, or all with one key that no entry matches.

    own  tuples that all its points have and no other point that differs has
    """

    between: tuple[str, str]
    entry: Entry | None
    points: tuple[Differing, ...]
    own: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.entry.label if self.entry else "unknown"

    @property
    def keys(self) -> Mapping[str, int]:
        """How many points have each key, the most frequent first."""
        return dict(Counter(point.cause.key for point in self.points).most_common())

    @property
    def name(self) -> str:
        return self.entry.name if self.entry else next(iter(self.keys))

    @property
    def example(self) -> Differing:
        """The point that differs first."""
        return min(self.points, key=lambda point: point.difference.first.index if point.difference.first else -1)

    def metrics(self) -> list[str]:
        """Of the tables' metrics those that moved most: by the sum of the relative changes of its points."""
        moved: dict[str, list[tuple[Move, Differing]]] = defaultdict(list)
        for point in self.points:
            for move in point.difference.moves:
                if move.relative is not None and move.metric in _KEY:
                    moved[f"{move.metric} of {move.flow}"].append((move, point))
        total = {name: sum(min(abs(move.relative or 0), 1.0) for move, _ in moves) for name, moves in moved.items()}
        return [_moved(name, moved[name]) for name in sorted(total, key=lambda name: -total[name])[:METRICS]]

    def to_json(self) -> dict[str, Any]:
        known = {name: getattr(self.entry, name, "") for name in ("reason", "source", "bug")}
        return {
            "between": list(self.between), "name": self.name, "label": self.label, **known,
            "keys": self.keys, "own": list(self.own), "metrics": self.metrics(),
            "example": self.example.old.id, "packets": list(self.example.cause.packets),
            "points": [
                {"plan": point.plan, "old": point.old.id, "new": point.new.id, "key": point.cause.key,
                 "direction": point.difference.direction, "verdicts": list(point.difference.verdicts)}
                for point in self.points
            ],
        }  # fmt: skip


def _moved(name: str, moves: Sequence[tuple[Move, Differing]]) -> str:
    most, point = max(moves, key=lambda pair: abs(pair[0].relative or 0))
    values = " → ".join(value_words(most.metric, value) for value in (most.a, most.b))
    middle = change_words(median(move.relative or 0 for move, _ in moves))
    return f"{name}: {values} in {point.old.id[:8]}; median {middle} over {len(moves)}"


def compared(plan: str, between: tuple[str, str], runs: tuple[Run, Run], entries: Sequence[Entry]) -> Compared:
    old, new = ({point.id: point for point in run.points} for run in runs)
    comparison, points = compare_runs(*runs), []
    for difference in comparison.differences:
        pair = old[difference.point], new[difference.other]
        why = _cause(*pair, difference)
        entry = next((entry for entry in entries if entry.matches(between, why.key, pair[0])), None)
        points.append(Differing(plan, *pair, difference, why, entry))
    return Compared(plan, between, runs, comparison, tuple(points))


def _cause(old: RunPoint, new: RunPoint, difference: Difference) -> Cause:
    """With the rules that are broken on one side alone in its key."""
    why, before, now = cause(old.path, new.path, difference), _broken(old), _broken(new)
    rules = [f"; {rule} is broken {'before' if rule in before else 'now'}" for rule in sorted(before ^ now)]
    return Cause("".join([why.key, *rules]), why.packets)


def _broken(point: RunPoint) -> set[str]:
    return {str(broken["rule"]) for broken in point.violations}


def grouped(pairs: Sequence[Compared]) -> list[Group]:
    """Groups of each pair of kernels, those to look at first before others, larger before smaller ones."""
    groups = []
    for between in dict.fromkeys(pair.between for pair in pairs):
        points = [point for pair in pairs if pair.between == between for point in pair.points]
        by_cause: dict[object, list[Differing]] = defaultdict(list)
        for point in points:
            by_cause[point.cause.key if point.entry is None else point.entry.place].append(point)
        made = [Group(between, of[0].entry, tuple(of), _own(of, points)) for of in by_cause.values()]
        groups += sorted(made, key=lambda group: (LABELS.index(group.label), -len(group.points)))
    return groups


def _own(some: Sequence[Differing], everything: Sequence[Differing]) -> tuple[str, ...]:
    others = [point.tuples for point in everything if all(point is not other for other in some)]
    shared = frozenset.intersection(*(point.tuples for point in some))
    return tuple(sorted(shared - frozenset().union(*others))) if others else ()
