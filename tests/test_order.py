# SPDX-License-Identifier: Apache-2.0
"""In what order the lab's generators and collectors run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.root

INIT = Path(__file__).parents[1] / "lab" / "boot" / "init.py"
TWO_THREADS = (
    "import sys, threading; t = threading.Thread(target=sys.stdin.read); t.start(); print(flush=True); t.join()"
)


def lab_init() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_init", INIT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def started(errors: Path) -> subprocess.Popen[bytes]:
    errors.parent.mkdir(parents=True)
    with errors.open("wb") as stderr:
        argv = [sys.executable, "-c", TWO_THREADS]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def policies(pid: int) -> list[int]:
    return [os.sched_getscheduler(int(path.name)) for path in Path(f"/proc/{pid}/task").iterdir()]


def test_all_threads_of_the_tasks_run_as_they_wake_and_nothing_else_does(tmp_path: Path) -> None:
    names = ("point/sender/bulk-client", "point/receiver/tcp_info", "other/sender/bulk-client")
    processes = [started(tmp_path / name / "stderr.txt") for name in names]
    try:
        lab_init().first_come_first_served(tmp_path / "point")
        first_come, usual = [os.SCHED_FIFO] * 2, [os.SCHED_OTHER] * 2
        assert [policies(process.pid) for process in processes] == [first_come, first_come, usual]
        assert set(policies(os.getpid())) == {os.SCHED_OTHER}
    finally:
        for process in processes:
            process.communicate()
