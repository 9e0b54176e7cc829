# SPDX-License-Identifier: Apache-2.0
"""Each fuzzer runs a fixed number of inputs with a fixed seed; what fuzzers found before stays fixed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import targets

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = {"captures": 300, "wire": 3000, "pcap": 2000, "plan": 300, "results": 300}
FOUND = sorted(path for path in HERE.glob("found/*/*"))


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="Atheris is not installed (x86-64 only)")
@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_fuzzer(name: str) -> None:
    argv = [sys.executable, str(HERE / "fuzz.py"), name, "--runs", str(RUNS[name]), "--seed", "1"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Done {RUNS[name]} runs" in done.stderr


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_a_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that raises anything but the project's errors ends the target's run: what the fuzzers rest on."""
    parser = {
        "wire": "limits.setting",
        "pcap": "read_packets",
        "plan": "load_plan",
        "results": "load_run",
        "captures": "scan",
    }[name]

    def broken(*_: object, **__: object) -> None:
        raise IndexError("planted")

    monkeypatch.setattr(f"tests.fuzz.targets.{parser}", broken)
    with pytest.raises(IndexError, match="planted"):
        targets.TARGETS[name].run(next(targets.TARGETS[name].seeds()))


@pytest.mark.parametrize("path", FOUND, ids=[f"{path.parent.name}-{path.name}" for path in FOUND])
def test_what_was_found(path: Path) -> None:
    targets.TARGETS[path.parent.name].run(path.read_bytes())


@pytest.mark.parametrize("name", sorted(targets.TARGETS))
def test_seeds(name: str) -> None:
    for seed in targets.TARGETS[name].seeds():
        targets.TARGETS[name].run(seed)
