# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side: which points differ, and in which metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from testctl.results import Run, RunPoint


@dataclass(frozen=True)
class Difference:
    """A point that both runs have and that is not the same.

    metrics  (flow, metric, in A, in B) for every metric whose value moved
    """

    point: str
    tuples: tuple[tuple[str, str, Any], ...]
    verdicts: tuple[str, str]
    metrics: tuple[tuple[str, str, Any, Any], ...]


@dataclass(frozen=True)
class Comparison:
    """What distinguishes run A from run B."""

    same: int
    differences: tuple[Difference, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return bool(self.differences or self.only_a or self.only_b)

    def to_json(self) -> dict[str, Any]:
        return {
            "same": self.same,
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "differences": [
                {"id": d.point, "tuples": [list(t) for t in d.tuples], "verdicts": list(d.verdicts),
                 "metrics": [{"flow": f, "metric": m, "a": a, "b": b} for f, m, a, b in d.metrics]}
                for d in self.differences
            ],
        }  # fmt: skip


def compare_runs(a: Run, b: Run) -> Comparison:
    """Points are the same when their ids are; they agree when digest and verdict do."""
    in_a, in_b = ({point.id: point for point in run.points} for run in (a, b))
    both = [(in_a[i], in_b[i]) for i in in_a if i in in_b]
    differences = [_difference(x, y) for x, y in both if (x.digest, x.verdict) != (y.digest, y.verdict)]
    return Comparison(
        len(both) - len(differences),
        tuple(differences),
        tuple(i for i in in_a if i not in in_b),
        tuple(i for i in in_b if i not in in_a),
    )


def _difference(x: RunPoint, y: RunPoint) -> Difference:
    moved = []
    for flow in sorted({*x.metrics, *y.metrics}):
        ours, theirs = x.metrics.get(flow, {}), y.metrics.get(flow, {})
        moved += [
            (flow, name, ours.get(name), theirs.get(name))
            for name in sorted({*ours, *theirs})
            if ours.get(name) != theirs.get(name)
        ]
    return Difference(x.id, x.tuples, (x.verdict, y.verdict), tuple(moved))


def print_comparison(found: Comparison, console: Console) -> None:
    """The comparison for a person."""
    for which, ids in (("first", found.only_a), ("second", found.only_b)):
        if ids:
            console.print(
                f"{len(ids)} points only in the {which} run: {', '.join(ids[:8])}{' …' if len(ids) > 8 else ''}"
            )
    for difference in found.differences:
        words = " ".join(f"{entity}.{parameter}={value}" for entity, parameter, value in difference.tuples)
        console.print(f"\n{difference.point}  {words}\n  verdict {' → '.join(difference.verdicts)}")
        table = Table("flow", "metric", "first", "second", box=None)
        for flow, metric, a, b in difference.metrics:
            table.add_row(flow, metric, str(a), str(b))
        if difference.metrics:
            console.print(table)
    if not found.differs:
        console.print(f"no difference: {found.same} points with the same digests")
    else:
        console.print(f"\n{found.same} points are the same, {len(found.differences)} differ")
