# SPDX-License-Identifier: Apache-2.0
"""The help of a command can be read in 80 columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_options_are_in_groups_beside_their_values(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, said, _ = command("run", "-h")
    lines = said.splitlines()
    assert code == 0
    assert [line for line in lines if line[:1].isalpha()][2:] == [
        "What is run:", "Where and how:", "Output:", "Options:",
    ]  # fmt: skip
    assert all(len(line) <= 80 for line in lines)
    assert not any(word in said for word in ("<path>", "<int", "INTEGER", "FLOAT", "PATH", "BOOLEAN"))
    start = next(n for n, line in enumerate(lines) if line.startswith("  --set ENTITY.PARAM=VALUE"))
    assert "--kernel NAME" in lines[start + 3], "three lines are enough for the longest"
