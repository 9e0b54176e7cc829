# SPDX-License-Identifier: Apache-2.0
"""A comparison for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from testctl.compare.deltas import ORDER, change_words, ranked, value_words
from testctl.compare.exact import Comparison, Difference
from testctl.compare.statistical import JudgedCell, Statistical
from testctl.core.words import counted
from testctl.report.metrics import places
from testctl.results import RunPoint
from testctl.system.text import first_of

MAX_METRICS = 12
"""Metrics of a point that are printed, unless all are asked for; those that are worse come first."""
MAX_POINTS = 20
_LONGEST_VERSION = 60
_LONGEST_NAME = 22
"""Characters of a metric's name on one line, so that a table with values fits into 80."""


def print_comparison(comparison: Comparison, console: Console, everything: bool = False) -> None:
    """What differs, worst first, below a sentence of it."""
    if comparison.differs:
        count = {way: sum(difference.direction == way for difference in comparison.differences) for way in ORDER}
        say(
            console,
            f"{same_points(comparison.same)}, {len(comparison.differences)} differ:"
            f" {count['worse']} worse, {count['better']} better, {count['other']} neither",
        )
    if comparison.shared:
        say(console, f"those that differ: {comparison.shared}")
    print_versions(comparison.versions, console)
    print_only(comparison.only_a, comparison.only_b, console)
    shown = sorted(comparison.differences, key=lambda difference: ORDER[difference.direction])
    for difference in shown if everything else shown[:MAX_POINTS]:
        _print_point(difference, comparison.expected, console, everything)
    if not everything and len(shown) > MAX_POINTS:
        say(console, f"\n… and {len(shown) - MAX_POINTS} more points; --all prints them")
    for which, names in (("first", comparison.metrics_a), ("second", comparison.metrics_b)):
        if names:
            say(console, f"metrics only in the {which} run: {', '.join(names)}")
    if not comparison.differs:
        say(console, f"no difference: {counted(comparison.same, 'point')} with the same digests")


def print_statistical(comparison: Statistical, console: Console, everything: bool = False) -> None:
    """What changed, worst first; everything: also what did not."""
    print_versions(comparison.versions, console)
    for cell in sorted(comparison.cells, key=lambda cell: ORDER[cell.direction]):
        if everything or cell.differs:
            _print_cell(cell, comparison.expected, console, everything)
    for doubt in comparison.doubts:
        say(console, doubt)
    few, none, changed = (comparison.count(conclusion) for conclusion in ("too few samples", "no evidence", "changed"))
    say(
        console,
        f"{counted(len(comparison.cells), 'point')}, {counted(few + none + changed, 'metric')},"
        f" of which {comparison.comparisons} vary:"
        f" {changed} changed, {none} without evidence, {few} with too few samples",
    )
    if few:
        say(
            console,
            f"a change of one of {comparison.comparisons} can be found with "
            f"{comparison.needed} repetitions of each side",
        )
    if not comparison.differs:
        say(console, "no difference that repetitions would show" if none else "no verdict: too few samples")


def _print_cell(cell: JudgedCell, expected: Sequence[str], console: Console, everything: bool) -> None:
    say(console, f"\n{cell.cell.name}  {tuple_words(cell.cell.tuples)}")
    for which, points in (("first", cell.cell.a), ("second", cell.cell.b)):
        if not points:
            say(console, f"  not in the {which} run")
    if cell.verdict_direction != "other" or everything:
        sides = [", ".join(f"{count} {v}" for v, count in counts.items()) or "none" for counts in cell.verdicts]
        say(console, f"  verdicts {' → '.join(sides)}")
    shown = cell.judgements if everything else cell.changed
    if not shown:
        return
    table = _columns("flow", "metric", "first", "second", "change", "95 %", "delta", "p", "n", "")
    first = places(expected)
    for judgement in sorted(
        shown,
        key=lambda j: (j.said != "changed", first.get(j.metric, len(first)), ORDER[j.direction], j.p_adjusted),
    ):
        tested, low_high = judgement.tested, judgement.relative_interval
        directed = judgement.said == "changed" and judgement.direction != "other"
        text = f"{judgement.said} ({judgement.direction})" if directed else judgement.said
        table.add_row(
            judgement.flow,
            _folded(judgement.metric),
            *(value_words(judgement.metric, middle) for middle in tested.medians),
            change_words(judgement.relative),
            " to ".join(change_words(end) for end in low_high) if low_high else "",
            f"{tested.effect:+.2f}",
            f"{judgement.p_adjusted:.2g}",
            "+".join(map(str, tested.counts)),
            text + (", two modes" if tested.modes else ""),
        )
    console.print(table, markup=False)


def print_versions(versions: Sequence[tuple[str, str, str]], console: Console) -> None:
    for what, a, b in versions:
        say(console, f"{what}: {a[:_LONGEST_VERSION] or 'none'} → {b[:_LONGEST_VERSION] or 'none'}")


def print_only(only_a: Sequence[RunPoint], only_b: Sequence[RunPoint], console: Console) -> None:
    for which, points in (("first", only_a), ("second", only_b)):
        if points:
            ids = first_of([point.id for point in points], 8)
            say(console, f"{counted(len(points), 'point')} only in the {which} run: {ids}")


def same_points(count: int) -> str:
    return f"{counted(count, 'point')} {'is' if count == 1 else 'are'} the same"


def tuple_words(tuples: Sequence[tuple[str, str, Any]]) -> str:
    return " ".join(f"{entity}.{parameter}={value}" for entity, parameter, value in tuples)


def _print_point(difference: Difference, expected: Sequence[str], console: Console, everything: bool) -> None:
    say(console, f"\n{difference.point}  {tuple_words(difference.tuples)}")
    for entity, parameter, a, b in difference.asked:
        say(console, f"  asked {entity}.{parameter}: {a or 'nothing'} → {b or 'nothing'}")
    if difference.verdicts[0] != difference.verdicts[1]:
        reason = difference.reasons[1] or difference.reasons[0]
        say(console, f"  verdict {' → '.join(difference.verdicts)}{': ' + reason if reason else ''}")
    if difference.first is not None:
        say(console, f"  first difference: {difference.first.words()}")
    elif difference.moves:
        say(console, "  the packets are the same, what is made of them is not")
    ordered = ranked(difference.moves, expected)
    shown = ordered if everything else ordered[:MAX_METRICS]
    if shown:
        table = _columns("flow", "metric", "first", "second", "change", "")
        for move in shown:
            way = "" if move.direction == "other" else move.direction
            values = [value_words(move.metric, value) for value in (move.a, move.b)]
            table.add_row(move.flow, _folded(move.metric), *values, change_words(move.relative), way)
        console.print(table, markup=False)
    if len(shown) < len(ordered):
        say(console, f"  … and {len(ordered) - len(shown)} more metrics; --all prints them")


def _folded(metric: str) -> str:
    """A long name on two lines, which end at an underscore."""
    if len(metric) <= _LONGEST_NAME:
        return metric
    middle = metric.rfind("_", 0, _LONGEST_NAME) + 1 or _LONGEST_NAME
    return f"{metric[:middle]}\n  {metric[middle:]}"


def _columns(*names: str) -> Table:
    """A table whose cells wrap when they are too wide: no name or number is truncated."""
    return Table(*(Column(name, overflow="fold") for name in names), box=None)


def say(console: Console, text: str) -> None:
    """Print text without markup and without wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
