# SPDX-License-Identifier: Apache-2.0
"""The committed BPF instructions are those of their source."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from testctl_agent import bpf
from testctl_agent.bpf import htb_mark

FOLDER = Path(bpf.__file__).parent
SOURCES = sorted(FOLDER.glob("*.c"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_is_current(source: Path) -> None:
    now = hashlib.sha256(source.read_bytes()).hexdigest()
    assert now.encode() in source.with_suffix(".o").read_bytes(), f"{source.name} has changed: run make in {FOLDER}"


@pytest.mark.skipif(shutil.which("clang-14") is None, reason="needs clang 14, by which they are committed")
def test_make_gives_the_same(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(FOLDER), "CLANG=clang-14", f"OUT={tmp_path}"], check=True)
    for source in SOURCES:
        assert (tmp_path / f"{source.stem}.o").read_bytes() == source.with_suffix(".o").read_bytes()


def test_a_threshold_that_is_not_set_is_never_reached() -> None:
    assert htb_mark.UNSET == 2**64 - 1
