# SPDX-License-Identifier: Apache-2.0
"""The C code that reads packets: compared with what Python has of it, and run under the sanitizers."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from testctl.records.native import structures
from testctl.records.native.structures import Library
from testctl.records.rows import search
from testctl.system import code_hash
from testctl_agent.spec.errors import TestbedError

from controller.tests.support.native import sanitized

MUTANT = Path(__file__).parent / "mutants.py"
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def test_a_missing_library_is_one_clear_error() -> None:
    program = "from testctl.records import native\nnative.MODULE = 'testctl.none'\nnative.library()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "TestbedError: testctl.none: this part of testctl, which is in C, is not built: install" in done.stderr


def test_a_library_of_other_structures_is_refused(tmp_path: Path) -> None:
    source, other = tmp_path / "other.c", tmp_path / "other.so"
    names = ("read", "check", "count_segments", "search", "take", "group")
    empty = "".join(f"void packets_{name}(void) {{}}\n" for name in names)
    source.write_text(empty + "void packets_sizes(unsigned long *sizes) { sizes[0] = 8; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(other), str(source)], check=True)
    with pytest.raises(TestbedError, match=r"want structures of \[[0-9, ]+\] bytes; got"):
        Library(ctypes.CDLL(str(other)))
    with pytest.raises(TestbedError, match="want the library that reads packets; got"):
        Library(ctypes.CDLL("libc.so.6"))


def test_the_c_sources_are_part_of_what_makes_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A point whose records other C code made is not taken by --resume."""
    native = Path(structures.__file__).parent
    assert "testctl.records.native" in code_hash.closure(["testctl.records.store"])
    before = code_hash.hash_of(["testctl.records.native"])
    copy = shutil.copytree(native, tmp_path / "native")
    real = code_hash.file_of
    monkeypatch.setattr(
        code_hash, "file_of", lambda name: copy / "__init__.py" if name == "testctl.records.native" else real(name)
    )
    assert code_hash.hash_of(["testctl.records.native"]) == before
    (copy / "source.c").write_text("// another\n")
    assert code_hash.hash_of(["testctl.records.native"]) != before


@pytest.mark.parametrize("count", [100, pytest.param(400, marks=pytest.mark.long)])
def test_damaged_and_hostile_files_under_the_sanitizers(tmp_path: Path, count: int) -> None:
    """Each ends in records or in an error that names the file, and no byte outside of it is read."""
    env = sanitized(tmp_path / "sanitized.so")
    argv = [sys.executable, str(MUTANT), str(tmp_path), str(count)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-4000:]
    counts = json.loads(done.stdout)
    assert counts["records"] + counts["refused"] == count
    assert min(counts.values()) > count // 10


def test_search_is_numpy_s() -> None:
    """In order or not, with equal elements, none, and values beyond both ends; numpy gets a few, the C code many."""
    draw = np.random.default_rng(1)
    for case in range(60):
        most = 50 if case % 2 else 10**6
        line = np.sort(draw.integers(-most, most, int(draw.integers(0, 3000))))
        values = draw.integers(-2 * most, 2 * most, 2000 if case % 3 else 10)
        for numbers in (values, np.sort(values), np.sort(values)[::-1]):
            for side in SIDES:
                assert (search(line, numbers, side) == np.searchsorted(line, numbers, side=side)).all()
