# SPDX-License-Identifier: Apache-2.0
"""A session of tests that leaves something behind fails, and says which test it was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.leftovers import MARK

ROOT = Path(__file__).parents[1]
TESTS = """
import os, subprocess
from testctl.system import temporary

def test_a_process():
    subprocess.run(["sh", "-c", "sleep 600 > /dev/null 2>&1 &"], check=True)

def test_a_directory():
    with temporary.temporary("testctl-lab-") as home:
        os.system(f"cp -r {home} {home}-left")

def test_nothing():
    with temporary.temporary("testctl-lab-"):
        pass
"""


def session(where: Path, name: str) -> subprocess.CompletedProcess[str]:
    (where / "tmp").mkdir()
    (where / "test_it.py").write_text(TESTS, encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if key != MARK and "XDIST" not in key}
    env |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(where / "tmp"), "TESTCTL_GRACE_S": "1"}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "tests.leftovers", "-p", "no:cacheprovider", "-k", name]
    return subprocess.run(
        [*argv, "test_it.py"], cwd=where, env=env, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_process_is_named_with_its_test(tmp_path: Path) -> None:
    done = session(tmp_path, "test_a_process")
    found = re.search(r"process (\d+) of test_it.py::test_a_process .*: sleep 600", done.stdout)
    assert found, done.stdout + done.stderr
    os.kill(int(found[1]), signal.SIGKILL)
    assert done.returncode == 1


def test_a_directory_is_named(tmp_path: Path) -> None:
    done = session(tmp_path, "test_a_directory")
    assert "directory " in done.stdout
    assert done.returncode == 1


def test_nothing_is_said_of_nothing(tmp_path: Path) -> None:
    done = session(tmp_path, "test_nothing")
    assert "left behind" not in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
