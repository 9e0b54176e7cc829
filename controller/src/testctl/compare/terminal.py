# SPDX-License-Identifier: Apache-2.0
"""A comparison for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from testctl.compare.deltas import ORDER, Move, change_words, ranked, value_words
from testctl.compare.exact import Comparison, Difference
from testctl.compare.statistical import JudgedCell, Statistical
from testctl.core.words import counted
from testctl.results import RunPoint
from testctl.system.text import first_of

MAX_METRICS = 12
"""Metrics of a point that are printed, unless all are asked for; those that are worse come first."""
MAX_POINTS = 20


def print_comparison(found: Comparison, console: Console, everything: bool = False) -> None:
    """What differs, worst first."""
    print_versions(found.versions, console)
    print_only(found.only_a, found.only_b, console)
    shown = sorted(found.differences, key=lambda one: ORDER[one.direction])
    for one in shown if everything else shown[:MAX_POINTS]:
        _print_point(one, console, everything)
    if not everything and len(shown) > MAX_POINTS:
        say(console, f"\n… and {len(shown) - MAX_POINTS} more points; --all prints them")
    for which, names in (("first", found.metrics_a), ("second", found.metrics_b)):
        if names:
            say(console, f"metrics only in the {which} run: {', '.join(names)}")
    if not found.differs:
        say(console, f"no difference: {counted(found.same, 'point')} with the same digests")
        return
    count = {way: sum(one.direction == way for one in found.differences) for way in ORDER}
    say(
        console,
        f"\n{same_points(found.same)}, {len(found.differences)} differ:"
        f" {count['worse']} worse, {count['better']} better, {count['other']} neither",
    )


def print_statistical(found: Statistical, console: Console, everything: bool = False) -> None:
    """What changed, worst first; everything: also what did not."""
    print_versions(found.versions, console)
    for cell in sorted(found.cells, key=lambda one: ORDER[one.direction]):
        if everything or cell.differs:
            _print_cell(cell, console, everything)
    for words in found.doubts:
        say(console, words)
    few, none, changed = (found.count(said) for said in ("too few samples", "no evidence", "changed"))
    say(
        console,
        f"{counted(len(found.cells), 'point')}, {counted(few + none + changed, 'metric')},"
        f" of which {found.comparisons} vary:"
        f" {changed} changed, {none} without evidence, {few} with too few samples",
    )
    if few:
        say(
            console, f"a change of one of {found.comparisons} can be found with {found.needed} repetitions of each side"
        )
    if not found.differs:
        say(console, "no difference that repetitions would show" if none else "no verdict: too few samples")


def _print_cell(cell: JudgedCell, console: Console, everything: bool) -> None:
    say(console, f"\n{cell.cell.name}  {tuple_words(cell.cell.tuples)}")
    for which, points in (("first", cell.cell.a), ("second", cell.cell.b)):
        if not points:
            say(console, f"  not in the {which} run")
    if cell.verdict_direction != "other" or everything:
        sides = [", ".join(f"{count} {verdict}" for verdict, count in one.items()) or "none" for one in cell.verdicts]
        say(console, f"  verdicts {' → '.join(sides)}")
    shown = cell.judgements if everything else cell.changed
    if not shown:
        return
    table = _columns("flow", "metric", "first", "second", "change", "95 %", "delta", "p", "n", "")
    for one in sorted(shown, key=lambda j: (j.said != "changed", ORDER[j.direction], j.p_adjusted)):
        tested, low_high = one.tested, one.relative_interval
        said = f"{one.said} ({one.direction})" if one.said == "changed" and one.direction != "other" else one.said
        table.add_row(
            one.flow,
            one.metric,
            *(value_words(middle) for middle in tested.medians),
            change_words(one.relative),
            " to ".join(change_words(end) for end in low_high) if low_high else "",
            f"{tested.effect:+.2f}",
            f"{one.p_adjusted:.2g}",
            "+".join(map(str, tested.counts)),
            said + (", two modes" if tested.modes else ""),
        )
    console.print(table)


def print_versions(versions: Sequence[tuple[str, str, str]], console: Console) -> None:
    for what, a, b in versions:
        say(console, f"{what}: {a[:24] or 'none'} → {b[:24] or 'none'}")


def print_only(only_a: Sequence[RunPoint], only_b: Sequence[RunPoint], console: Console) -> None:
    for which, points in (("first", only_a), ("second", only_b)):
        if points:
            ids = first_of([point.id for point in points], 8)
            say(console, f"{counted(len(points), 'point')} only in the {which} run: {ids}")


def same_points(count: int) -> str:
    """How many points are the same."""
    return f"{counted(count, 'point')} {'is' if count == 1 else 'are'} the same"


def tuple_words(tuples: Sequence[tuple[str, str, Any]]) -> str:
    return " ".join(f"{entity}.{parameter}={value}" for entity, parameter, value in tuples)


def _print_point(one: Difference, console: Console, everything: bool) -> None:
    say(console, f"\n{one.point}  {tuple_words(one.tuples)}")
    for entity, parameter, a, b in one.asked:
        say(console, f"  asked {entity}.{parameter}: {a or 'nothing'} → {b or 'nothing'}")
    if one.verdicts[0] != one.verdicts[1]:
        reason = one.reasons[1] or one.reasons[0]
        say(console, f"  verdict {' → '.join(one.verdicts)}{': ' + reason if reason else ''}")
    if one.first is not None:
        say(console, f"  first difference: {one.first.words()}")
    elif one.moves:
        say(console, "  the packets are the same, what is made of them is not")
    ordered = ranked(one.moves)
    shown = ordered if everything else ordered[:MAX_METRICS]
    if shown:
        console.print(_table(shown))
    if len(shown) < len(ordered):
        say(console, f"  … and {len(ordered) - len(shown)} more metrics; --all prints them")


def _table(moves: Sequence[Move]) -> Table:
    table = _columns("flow", "metric", "first", "second", "change", "")
    for one in moves:
        way = "" if one.direction == "other" else one.direction
        table.add_row(one.flow, one.metric, value_words(one.a), value_words(one.b), change_words(one.relative), way)
    return table


def _columns(*names: str) -> Table:
    """A table whose cells wrap when they are too wide: no name or number is truncated."""
    return Table(*(Column(name, overflow="fold") for name in names), box=None)


def say(console: Console, text: str) -> None:
    """Print text without markup and without wrapping."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
