# SPDX-License-Identifier: Apache-2.0
"""Whatever words a user gives `testctl upload`: a sentence and exit code 2, never a traceback."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from testctl.cli.main import main
from testctl.results import Run

WRONG = """
none
file
empty
damaged
''
../
run/points
run --url nonsense
run --url http://host:abc
run --url http://host:99999
run --url http://[::1
run --url http://[foo]:8086
run --url http://[::1]:1 --api 9
run --url http://[::1]:1 --series soon
run --url http://[::1]:1 --series 1ns
run --url http://[::1]:1 --spool-limit x
run --url http://[::1]:1 --credentials none
run --url http://[::1]:1 --attempts 0
run --no-such-option
run --json=3
run run
"""


@pytest.mark.parametrize("words", ["", *WRONG.strip().splitlines()])
def test_what_is_wrong_is_said(
    words: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").symlink_to(run.path)
    (tmp_path / "file").write_text("no run\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged" / "points" / "loss").mkdir(parents=True)
    (tmp_path / "damaged" / "summary.json").write_text('{"points": 3}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["testctl", "upload", *shlex.split(words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 2, printed
    assert printed.err.strip()
    assert "Traceback" not in printed.err
    assert "a bug" not in printed.err
