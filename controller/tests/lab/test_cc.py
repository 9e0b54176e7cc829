# SPDX-License-Identifier: Apache-2.0
"""testctl cc new and check, on a copy of the checkout's lab/cc."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testctl.lab import cc
from testctl.system import checkout
from testctl_agent.spec.errors import PlanError, ProgramError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for what in ("lab/cc", "lab/kernel", "agents/tests/cc"):
        shutil.copytree(ROOT / what, tmp_path / what, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("TESTCTL_ROOT", str(tmp_path))
    checkout.root.cache_clear()
    yield tmp_path
    checkout.root.cache_clear()


def test_new_compiles_and_its_test_passes(copied: Path) -> None:
    source, test = cc.create("my_own")
    assert source == copied / "lab/cc/tcp_my_own.c"
    said = list(cc.check("my_own"))
    assert said[:2] == ["my_own: compiles for this machine", "my_own: compiles as BPF"]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(test)]
    done = subprocess.run(argv, cwd=copied, env={**os.environ, "PYTHONPATH": f"{copied}:{ROOT}/agents/src"},
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Mine", "want at most 15 lower-case letters"),
        ("a" * 16, "want at most 15 lower-case letters"),
        ("../x", "want at most 15 lower-case letters"),
        ("cubic", "Linux has a congestion control of that name"),
        ("areno", r"tcp_areno\.c is there already"),
    ],
)
def test_refused_names(copied: Path, name: str, words: str) -> None:
    before = sorted(copied.rglob("*"))
    with pytest.raises(PlanError, match=words):
        cc.create(name)
    assert sorted(copied.rglob("*")) == before


def test_check_says_what_the_compiler_says(copied: Path) -> None:
    source, _ = cc.create("my_own")
    source.write_text(source.read_text().replace("w->cwnd++;", "w->cwmd++;"))
    with pytest.raises(ProgramError, match=r"tcp_my_own\.c: does not compile for this machine: .*cwmd"):
        list(cc.check("my_own"))


def test_check_of_what_is_not_there(copied: Path) -> None:
    with pytest.raises(PlanError, match="there are areno, "):
        list(cc.check("none"))
    with pytest.raises(PlanError, match="it can only be built into a kernel"):
        list(cc.check("dctcp_bug"))


def test_names_are_those_of_the_checkout_and_of_linux(copied: Path) -> None:
    cc.create("my_own")
    found = cc.names()
    assert found["my_own"] == str(copied / "lab/cc/tcp_my_own.c")
    assert found["dctcp_bug"].endswith("tcp_dctcp_bug.c")
    assert found["cubic"] == "Linux"
    assert list(found).index("dctcp_bug") < list(found).index("bbr")
