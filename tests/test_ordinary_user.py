# SPDX-License-Identifier: Apache-2.0
"""The lab needs no root: another user's point, with captures, has the digest of root's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from testctl.lab.built import built

UID = 61234
ONLY = "-all,+dac_read_search"
USER = [
    "setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups",
    # A checkout and a Python below /root can be read; nothing more than any user can do.
    "--securebits", "+no_setuid_fixup", "--inh-caps", ONLY, "--ambient-caps", ONLY, "--bounding-set", ONLY,
]  # fmt: skip
PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, 100mbit]
  - [switch, delay, 1ms]
  - [sender, tcp_events, on]
  - [hosts, tcp_info, 10ms]
  - [switch, fate, "drop data 30-33 of bulk, first"]
  - [bulk, duration, 200ms]
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory of that user's, which every user can reach."""
    with tempfile.TemporaryDirectory(prefix="testctl-user-") as name:
        where = Path(name)
        (where / "tmp").mkdir()
        (where / "cache").mkdir()
        (where / "short.yaml").write_text(PLAN)
        for path in (where, *where.iterdir()):
            os.chown(path, UID, UID)
        yield where


@pytest.mark.root
@pytest.mark.lab
def test_another_user_has_roots_digest(home: Path) -> None:
    kernel = built("6.12")
    assert kernel is not None
    (home / "root's").mkdir()
    for cache in ("cache", "root's"):
        (home / cache / "kernels").symlink_to(kernel.directory.parent)
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": "/usr/bin:/bin"}
    found = {
        who: _run([*words, *_testctl(home / "short.yaml", home / who)], env | {"TESTCTL_CACHE": str(home / cache)})
        for who, words, cache in (("another", USER, "cache"), ("root", [], "root's"))
    }
    assert {summary["points"][0]["verdict"] for summary in found.values()} == {"pass"}
    assert found["another"]["digest"] == found["root"]["digest"]
    assert list((home / "tmp").iterdir()) == []
    assert {path.stat().st_uid for path in (home / "another").rglob("*")} == {UID}


def _testctl(plan: Path, results: Path) -> list[str]:
    return [sys.executable, "-m", "testctl.cli.main", "run", str(plan), "--results", str(results), "--json"]


def _run(argv: list[str], env: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary
