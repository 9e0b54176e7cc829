# SPDX-License-Identifier: Apache-2.0
"""An exception that nobody foresaw ends a command with exit 3 and one sentence; the traceback is in a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from testctl.cli import main
def broken(): raise KeyError("\\x1b]0;mine\\x07 \\ud800")
main.app.command()(broken)
sys.argv = ["testctl", "broken"]
main.main()
"""


def run(cache: Path) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"TESTCTL_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=False)


def test_a_bug_is_said_in_a_sentence(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("testctl: a bug: KeyError: ")
    assert "\x1b" not in done.stderr
    file = re.search(r"the traceback is in (\S+)$", done.stderr)
    assert file is not None
    assert Path(file[1]).read_text().startswith("Traceback")


def test_where_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "tracebacks").write_text("a file")
    done = run(tmp_path)
    assert done.returncode == 3
    assert "its traceback can't be written (" in done.stderr
    assert "Traceback" in done.stderr
