# SPDX-License-Identifier: Apache-2.0
"""One thing is not several."""

from __future__ import annotations

import pytest
from testctl.core.words import counted


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [
        (0, "point", "0 points"),
        (1, "point", "1 point"),
        (2, "point", "2 points"),
        (1, "set of tuples", "1 set of tuples"),
        (7, "set of tuples", "7 sets of tuples"),
    ],
)
def test_one_is_not_several(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
