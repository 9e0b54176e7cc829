# SPDX-License-Identifier: Apache-2.0
"""tgen under AddressSanitizer and UndefinedBehaviorSanitizer: every other test of this directory, and its fuzzer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "tgen"
RUNS = 200_000
no_fuzzer = pytest.mark.skipif(
    shutil.which("clang") is None
    or not Path(subprocess.run(["clang", "--print-file-name=libclang_rt.fuzzer-x86_64.a"], capture_output=True,
                               text=True, check=False).stdout.strip()).is_absolute(),
    reason="libFuzzer is not installed (libclang-rt-14-dev)",
)  # fmt: skip


def make(target: str) -> Path:
    done = subprocess.run(["make", "-C", str(SOURCE), target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return SOURCE / target


def test_flows_and_errors() -> None:
    environment = os.environ | {"TESTCTL_TGEN": str(make("build/tgen-sanitized")), "TESTCTL_TEST_PORTS": "9000"}
    environment.pop("TESTCTL_TESTS_UNTIL", None)
    others = [str(path) for path in sorted(HERE.glob("test_*.py")) if path.name != Path(__file__).name]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *others]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
    assert "Sanitizer" not in done.stdout + done.stderr


@no_fuzzer
def test_options(tmp_path: Path) -> None:
    """From its seeds, with a fixed seed: no finding of a sanitizer, no assertion of the harness that fails."""
    words = [f"-runs={RUNS}", "-seed=1", "-close_fd_mask=2", f"-artifact_prefix={tmp_path}/"]
    (tmp_path / "new").mkdir()
    argv = [str(make("build/fuzz-options")), *words, str(tmp_path / "new"), str(HERE / "corpus")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Done {RUNS} runs" in done.stderr
