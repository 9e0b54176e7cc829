# SPDX-License-Identifier: Apache-2.0
"""With which tuples alone a line is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Values = Mapping[tuple[str, str], str]
"""(entity, parameter) -> value, as text, of a point."""


def only_with(points: Sequence[Values], reached: Sequence[bool]) -> list[tuple[str, str, list[str]]]:
    """(entity, parameter, values) of tuples without which no point reaches it, the fewest of the plan's values first.

    Only parameters that the plan varies, with a value that reaches it and another that does not.
    """
    names = dict.fromkeys(name for point in points for name in point)
    conditions = []
    for entity, parameter in names:
        values = [point.get((entity, parameter), "") for point in points]
        there = {value for value, is_reached in zip(values, reached, strict=True) if is_reached}
        if there and there != set(values):
            conditions.append((len(there) / len(set(values)), entity, parameter, sorted(there)))
    return [(entity, parameter, values) for _, entity, parameter, values in sorted(conditions)]
