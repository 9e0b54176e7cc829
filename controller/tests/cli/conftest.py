# SPDX-License-Identifier: Apache-2.0
"""A command line in the process of the test."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from testctl.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """(exit code, standard output, standard error) of a command line; an exception is a failure."""

    def one(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["testctl", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return one
