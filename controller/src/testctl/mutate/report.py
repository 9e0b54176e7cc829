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
from testctl.mutate.draw import Mutant
from testctl.mutate.trial import KINDS, Record

COLUMNS = ("mutants", "no program", "reached", *KINDS, "digest only", "survived")
SHOWN = 100
"""Characters of a code's old and new form."""


def rows(
    mutants: Sequence[Mutant], dropped: Collection[int], records: Mapping[int, Record], key: Callable[[Mutant], str]
) -> dict[str, dict[str, int]]:
    """The counts by a key of each mutant that was tried or does not compile, and of all."""
    table: dict[str, dict[str, int]] = {}
    for mutant in mutants:
        record = records.get(mutant.number)
        if record is None and mutant.number not in dropped:
            continue
        for name in (key(mutant), "all"):
            row = table.setdefault(name, dict.fromkeys(COLUMNS, 0))
            row["mutants"] += 1
            row["no program"] += record is None
            if record is not None and record.reached:
                row["reached"] += 1
                for kind in record.found:
                    row[kind] += 1
                if not record.found:
                    row[record.verdict] += 1
    table["all"] = table.pop("all", dict.fromkeys(COLUMNS, 0))
    return table


def to_json(mutants: Sequence[Mutant], dropped: Collection[int], records: Mapping[int, Record]) -> dict[str, Any]:
    """Counts and every mutant."""
    entries = []
    for mutant in mutants:
        record = records.get(mutant.number)
        verdict = "no program" if mutant.number in dropped else record.verdict if record else "not tried"
        entries.append({"number": mutant.number, **shown(mutant), "verdict": verdict, **(vars(record) if record else {})})
    return {
        "files": rows(mutants, dropped, records, lambda mutant: mutant.site.file),
        "operators": rows(mutants, dropped, records, lambda mutant: mutant.site.operator),
        "mutants": entries,
    }


def shown(mutant: Mutant) -> dict[str, Any]:
    """Where a mutant is, and its code before and after."""
    site = mutant.site
    return {"file": site.file, "line": site.line, "function": site.function, "operator": site.operator,
            "old": site.old, "new": site.new}  # fmt: skip


def print_report(
    mutants: Sequence[Mutant], dropped: Collection[int], records: Mapping[int, Record], console: Console
) -> None:
    """The two tables, then the mutants that were reached and not detected."""
    for what, key in (
        ("file", lambda mutant: PurePosixPath(mutant.site.file).name),
        ("operator", lambda mutant: mutant.site.operator),
    ):
        table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column(what, no_wrap=True)
        for column in COLUMNS:
            table.add_column("expect" if column == "expectation" else column, justify="right")
        for name, row in rows(mutants, dropped, records, key).items():
            table.add_row(name, *(str(row[column]) for column in COLUMNS))
        console.print(table)
        console.print()
    for line in survivor_lines(mutants, records):
        console.print(Text(line), soft_wrap=True)
    left = len(mutants) - len(dropped) - len(records)
    if left:
        console.print(f"{counted(left, 'mutant')} not tried, for lack of time: go on with --resume", soft_wrap=True)


def survivor_lines(mutants: Sequence[Mutant], records: Mapping[int, Record]) -> Iterator[str]:
    """Two or three lines on each mutant that was reached and not detected."""
    for mutant in mutants:
        record, site = records.get(mutant.number), mutant.site
        if record is None or record.verdict not in ("digest only", "survived"):
            continue
        yield f"{record.verdict}: {site.file}:{site.line} ({site.function}, {site.operator}, mutant {mutant.number})"
        yield f"  {_short(site.old)}  →  {_short(site.new) or '(removed)'}"
        if record.differ:
            yield f"  other packets at {first_at(record)}"
        elif record.different:
            yield f"  no other packet at {counted(len(record.tried), 'point')}, of {record.different} where it could matter"
        else:
            yield f"  {counted(record.reached, 'point')} reach it, and it gives the same value at each"


def first_at(record: Record) -> str:
    """The first point with another digest, and how many more there are."""
    (plan, point), more = record.differ[0], len(record.differ) - 1
    return f"point {point} of {plan}" + (f" and {more} more" if more else "")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
