# SPDX-License-Identifier: Apache-2.0
"""Commands that start labs, killed by SIGKILL: no process is left, and after the next start no directory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testctl.system.temporary import ALL, LABS

from tests.leftovers import marked

pytestmark = [pytest.mark.long, pytest.mark.lab, pytest.mark.timeout(600)]

LONG_S = 120
PLAN = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n  - [bulk, bytes, BYTES]\n"
BUSY = ("sh", "-c", "while :; do :; done")


@pytest.fixture
def where(tmp_path: Path) -> Iterator[Path]:
    """A place for temporary files of its own, and plans."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "long.yaml").write_text(PLAN.replace("BYTES", "100GB"))
    (tmp_path / "short.yaml").write_text(PLAN.replace("BYTES", "10kB"))
    (tmp_path / "wait.gdb").write_text("python import time; time.sleep(600)\n")
    yield tmp_path
    for pid in alive(tmp_path):
        os.kill(pid, signal.SIGKILL)


def begin(where: Path, *words: str) -> subprocess.Popen[bytes]:
    env = os.environ | {"TMPDIR": str(where / "tmp")}
    return subprocess.Popen(
        [sys.executable, "-m", "testctl.cli.main", *words], env=env, cwd=where, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def alive(where: Path) -> list[int]:
    """The processes that a command of this test started: its environment or a lab's words have the directory."""
    return marked(str(where / "tmp"))


def until(true: Callable[[], object]) -> bool:
    end = time.monotonic() + LONG_S
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(true())


def left(where: Path, prefix: str = ALL) -> list[str]:
    return sorted(path.name for path in (where / "tmp").glob(f"{prefix}*"))


def of_gdb(where: Path) -> tuple[str, ...]:
    run = where / "run"
    assert begin(where, "run", "short.yaml", "--out", str(run)).wait() == 0
    (point,) = json.loads((run / "summary.json").read_text())["points"]
    return "replay", str(run), str(point["id"]), "--gdb", "-x", str(where / "wait.gdb")


COMMANDS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "lab exec": lambda where: ("lab", "exec", "--", *BUSY),
    "lab test": lambda where: ("lab", "test", "6.12"),
    "run": lambda where: ("run", "long.yaml", "--jobs", "2"),
    "replay --gdb": of_gdb,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_left(where: Path, name: str) -> None:
    if "gdb" in name and not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    with begin(where, *COMMANDS[name](where)) as killed:
        assert until(lambda: left(where, LABS) and (len(alive(where)) > 1 or killed.poll() is not None))
        assert killed.poll() is None
        killed.kill()
        killed.wait()
        assert until(lambda: not alive(where)), alive(where)
    with begin(where, "lab", "exec", "--", "true") as again:
        assert again.wait(LONG_S) == 0
    assert left(where) == []
    assert alive(where) == []
