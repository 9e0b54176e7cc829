# SPDX-License-Identifier: Apache-2.0
"""What became of the mutants: tables by file and by operator, and those that no plan detects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from testctl.core.words import counted
from testctl.mutate.detect import Record
from testctl.mutate.draw import Mutant

COLUMNS = {
    "drawn": "drawn", "no program": "no program", "reached": "reached", "expectation": "expect", "rule": "rule",
    "crash": "crash", "invalid": "invalid", "digest only": "digest only", "survived": "nothing",
}  # fmt: skip
"""A table's columns by their keys in JSON."""
SHOWN = 100
"""Characters of a mutant's code before and after that the terminal shows."""

Records = Mapping[int, Record]


def rows(
    mutants: Sequence[Mutant], absent: Collection[int], records: Records, key: Callable[[Mutant], str]
) -> dict[str, dict[str, int]]:
    """Counts of the mutants that were tried or are no program, by a key of each, and of "all".

    A mutant that is detected in several ways counts for each.
    """
    table: dict[str, dict[str, int]] = {}
    for mutant in mutants:
        record = records.get(mutant.number)
        if record is None and mutant.number not in absent:
            continue
        for name in (key(mutant), "all"):
            row = table.setdefault(name, dict.fromkeys(COLUMNS, 0))
            row["drawn"] += 1
            row["no program"] += record is None
            if record is not None and record.reached:
                row["reached"] += 1
                for column in record.detected or [record.verdict]:
                    row[column] += 1
    return dict(sorted(table.items(), key=lambda item: (item[0] == "all", item[0])))


def to_json(mutants: Sequence[Mutant], absent: Collection[int], records: Records, plans: Sequence[str]) -> Any:
    """The counts, and every mutant.  plans: their names, for the places that records have."""
    entries = []
    for mutant in mutants:
        record = records.get(mutant.number)
        verdict = "no program" if mutant.number in absent else record.verdict if record else "not tried"
        entries.append(shown(mutant) | {"verdict": verdict} | (vars(record) if record else {}))
    return {
        "plans": list(plans),
        "files": rows(mutants, absent, records, lambda mutant: mutant.site.file),
        "operators": rows(mutants, absent, records, lambda mutant: mutant.site.operator),
        "mutants": entries,
    }


def shown(mutant: Mutant) -> dict[str, Any]:
    """Where a mutant is, and its code before and after."""
    site = mutant.site
    return {"number": mutant.number, "file": site.file, "line": site.line, "function": site.function,
            "operator": site.operator, "old": site.old, "new": site.new}  # fmt: skip


def print_report(
    mutants: Sequence[Mutant], absent: Collection[int], records: Records, plans: Sequence[str], console: Console
) -> None:
    """The mutants that were reached and not detected, then the two tables."""
    for line in _survivors(mutants, records, plans):
        console.print(Text(line), soft_wrap=True)
    keys: dict[str, Callable[[Mutant], str]] = {
        "file": lambda mutant: PurePosixPath(mutant.site.file).name,
        "operator": lambda mutant: mutant.site.operator,
    }
    for heading, key in keys.items():
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column(heading, no_wrap=True)
        for column in COLUMNS.values():
            table.add_column(column, justify="right", min_width=max(map(len, column.split())))
        for name, row in rows(mutants, absent, records, key).items():
            table.add_row(name, *(str(row[column]) for column in COLUMNS))
        console.print(table, "")
    reached = [record for record in records.values() if record.reached]
    detected = sum(bool(record.detected) for record in reached)
    console.print(f"{counted(len(reached), 'mutant')} reached, {detected} detected", soft_wrap=True, highlight=False)
    if left := len(mutants) - len({*absent, *records}):
        console.print(f"{counted(left, 'mutant')} not tried, the time is over: go on with --resume", soft_wrap=True)


def _survivors(mutants: Sequence[Mutant], records: Records, plans: Sequence[str]) -> Iterator[str]:
    """Three lines on each mutant that was reached and not detected, and how near the points came."""
    for mutant in sorted(mutants, key=lambda mutant: (mutant.site.file, mutant.site.line)):
        record, site = records.get(mutant.number), mutant.site
        if record is None or record.verdict not in ("digest only", "survived"):
            continue
        yield f"{site.file}:{site.line} {site.function}(), {site.operator}, mutant {mutant.number}: {record.verdict}"
        yield f"  {_short(site.old)}  →  {_short(site.new) or '(removed)'}"
        if record.differ:
            place, point, metric = max(record.differ, key=lambda entry: bool(entry[2]))
            yield f"  other packets at {counted(len(record.differ), 'point')}, as {point} of {plans[place]}" + (
                f": {metric}" if metric else ""
            )
        elif record.different:
            tried = f"{len(record.tried)} of {counted(record.different, 'point')}"
            yield f"  the same packets at {tried} where a value differs"
        else:
            yield f"  the same value at {counted(record.reached, 'point')}"
    yield ""


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
