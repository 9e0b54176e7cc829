# SPDX-License-Identifier: Apache-2.0
"""The committed BPF instructions are those of their source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from testctl_agent import bpf
from testctl_agent.bpf import htb_mark
from testctl_agent.cc.compile import BPF, built

HOME = Path(bpf.__file__).parents[1]
SOURCES = sorted(path for name in ("bpf", "cc/bpf", "tcp_trace") for path in (HOME / name).glob("*.c"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_is_current(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no compiler."""
    monkeypatch.setenv("PATH", "")
    assert built(source, source.stem, BPF, "it") == source.with_suffix(".o"), f"run make in {HOME}/bpf"


@pytest.mark.skipif(shutil.which("clang-14") is None, reason="needs clang 14, by which they are committed")
def test_make_gives_the_same(tmp_path: Path) -> None:
    copy = shutil.copytree(HOME, tmp_path / "copy", ignore=shutil.ignore_patterns("*.o", "*.py", "__pycache__"))
    subprocess.run(["make", "-s", "-C", str(copy / "bpf"), "CLANG=clang-14", "OBJCOPY=llvm-objcopy-14"], check=True)
    for source in SOURCES:
        made = (copy / source.relative_to(HOME)).with_suffix(".o")
        assert made.read_bytes() == source.with_suffix(".o").read_bytes(), source


def test_a_threshold_that_is_not_set_is_never_reached() -> None:
    assert htb_mark.UNSET == 2**64 - 1
