# SPDX-License-Identifier: Apache-2.0
"""Counts with nouns."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """ "1 point", "3 points"; the plural of the noun's first word ends in s: "2 sets of tuples"."""
    first, space, rest = noun.partition(" ")
    return f"{count} {first}{'' if count == 1 else 's'}{space}{rest}"
