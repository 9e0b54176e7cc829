# SPDX-License-Identifier: Apache-2.0
"""Text that several packages print in the same form."""

from __future__ import annotations

from collections.abc import Sequence


def first_of(words: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first `most` words, and how many more there are: "a, b, and 3 more"."""
    more = [f"and {len(words) - most} more"] if len(words) > most else []
    return separator.join([*words[:most], *more])
