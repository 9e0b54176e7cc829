# SPDX-License-Identifier: Apache-2.0
"""What P4 programs of the user's held when a point had ended: registers and counters, cells of 0 left out."""

from __future__ import annotations

from collections.abc import Iterator

from testctl.results import RunPoint

_MOST_LISTED = 256
"""Cells of a register or a counter."""
_MOST_PRINTED = 16


def program_rows(point: RunPoint) -> Iterator[tuple[str, str, list[tuple[str, str]], int]]:
    """(switch, "register Mark.marked", [(cell, its value)] of the first ones, cells left out)."""
    for switch, held in point.programs.items():
        for kind, arrays in sorted(held.items()):
            for name, cells in arrays.items():
                values = [(at, _shown(cells[at])) for at in sorted(cells, key=lambda at: (len(at), at))]
                if values:
                    listed = values[:_MOST_LISTED]
                    yield switch, f"{kind.removesuffix('s')} {name}", listed, len(values) - len(listed)


def program_lines(point: RunPoint) -> Iterator[str]:
    """A line for each register and counter."""
    for switch, name, cells, left_out in program_rows(point):
        left_out += max(len(cells) - _MOST_PRINTED, 0)
        values = "; ".join(f"[{at}] {value}" for at, value in cells[:_MOST_PRINTED])
        yield f"{switch}, {name}: {values}{f', and {left_out:,} more in records.json' if left_out else ''}"


def _shown(value: int | list[int]) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(f"{count:,} {unit}" for count, unit in zip(value, ("packets", "B"), strict=False))
