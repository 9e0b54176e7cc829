# SPDX-License-Identifier: Apache-2.0
"""From a run's counters to the lines of its kernel's sources, for the table, the questions and the pages."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.cli.main import app
from testctl.lab.kernel import Kernel
from testctl.results import Run, layout
from testctl_agent.spec.errors import TestbedError
from typer.testing import CliRunner

from controller.tests.support.synthetic_sweep import make_sweep

NAME = "net/ipv4/tcp_p"
SOURCE = """int chosen(int argc)
{
	if (argc > 2)
		return 7; /* <never> */
	return argc;
}

int main(int argc, char **argv)
{
	return chosen(argc) == 2;
}
"""


def compiled(where: Path, *words: str) -> bytes:
    """Compile the program and run it with some words: its counters."""
    (where / NAME).parent.mkdir(parents=True)
    (where / f"{NAME}.c").write_text(SOURCE, encoding="ascii")
    subprocess.run(["gcc", "--coverage", "-c", f"{NAME}.c", "-o", f"{NAME}.o"], cwd=where, check=True)
    subprocess.run(["gcc", "--coverage", f"{NAME}.o", "-o", "p"], cwd=where, check=True)
    subprocess.run(["./p", *words], cwd=where, check=False)
    return (where / f"{NAME}.gcda").read_bytes()


def packed(data: bytes) -> bytes:
    """As lab/boot/coverage.py writes it."""
    name = f"build/objects/{NAME}.gcda".encode()
    return zlib.compress(struct.pack("<HI", len(name), len(data)) + name + data)


@pytest.fixture
def counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Of one execution; its kernel is built."""
    data = compiled(tmp_path / "tree", "a")
    kernel = Kernel("9.9-coverage", "0" * 16, tmp_path / "kernel")
    for place, suffix in (("notes", ".gcno"), ("sources", ".c")):
        (kernel.directory / place / NAME).parent.mkdir(parents=True)
        shutil.copy(tmp_path / "tree" / f"{NAME}{suffix}", kernel.directory / place / f"{NAME}{suffix}")
    monkeypatch.setattr("testctl.coverage.table.built", lambda name: kernel)
    return data


@pytest.fixture
def run(counters: bytes, tmp_path: Path) -> Run:
    """One whose first two points have counters; the second executed nothing."""
    made = make_sweep(tmp_path / "results")
    for point, data in zip(made.points, (packed(counters), zlib.compress(b"")), strict=False):
        (point.path / layout.COVERAGE).write_bytes(data)
    return made


def called(*words: object) -> str:
    result = CliRunner().invoke(app, ["coverage", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_what_points_reach(run: Run, tmp_path: Path) -> None:
    (entry,) = json.loads(called(run.path, "--json"))["files"].values()
    assert entry == {
        "lines": {"reached": 5, "all": 6},
        "branches": {"reached": 1, "all": 2},
        "functions": {"reached": 2, "all": 2},
    }
    assert f"{NAME}.c:4: return 7; /* <never> */" in called(run.path, "--unreached")
    said = called(run.path, "--line", f"{NAME}.c:5")
    assert "1 of 2 points reach it" in said
    assert f"  {run.points[0].id}  1 times" in said
    assert "only with " in said
    assert called(run.path, run.path, "--alone") == "0 of 5 lines are reached by one run alone\n"
    index = Path(called(run.path, "--html", tmp_path / "pages").strip())
    assert json.loads(called(run.path, "--html", tmp_path / "pages", "--json")) == {"index": str(index)}
    page = (index.parent / f"{NAME.replace('/', '_')}.c.html").read_text(encoding="utf-8")
    assert '<tr class="never"><td id="L4">4<td>0<td>0<td>\t\treturn 7; /* &lt;never&gt; */' in page
    assert '<tr class="part"><td id="L3">3<td>1<td>1<td>' in page


def test_points_of_several_runs_count_together(run: Run, counters: bytes, tmp_path: Path) -> None:
    """The second run's only point with counters took the other way."""
    other = make_sweep(tmp_path / "others")
    more = compiled(tmp_path / "more", "a", "b")
    assert more != counters
    (other.points[0].path / layout.COVERAGE).write_bytes(packed(counters[:12] + more[12:]))
    (entry,) = json.loads(called(other.path, "--json"))["files"].values()
    assert entry["lines"] == {"reached": 5, "all": 6}
    together = json.loads(called(run.path, other.path, "--json"))
    assert together["points"] == 3
    assert together["files"][f"{NAME}.c"]["lines"] == {"reached": 6, "all": 6}
    assert "1 of 3 points reach it" in called(run.path, other.path, "--line", f"{NAME}.c:4")
    assert f"second alone  {NAME}.c:4: return 7;" in called(run.path, other.path, "--alone")


def test_a_run_that_affected_by_kept_has_the_kernel_of_its_key(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree's kernel, which is registered under no name."""
    key = "0123456789abcdef"
    monkeypatch.setattr("testctl.coverage.table.built", lambda name: None)
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path / "cache"))
    for file in (point.path / layout.POINT for point in run.points[:2]):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"kernel": "source-coverage"}))
    with pytest.raises(TestbedError, match="source-coverage: not built here any more"):
        called(run.path)
    place = tmp_path / "cache/kernels" / f"source-coverage-{key}"
    shutil.copytree(tmp_path / "kernel", place)
    (place / "linux").touch()
    kept = run.path.rename(run.path.with_name(f"{key}-0123456789ab"))
    assert "1 of 2 points reach it" in called(kept, "--line", f"{NAME}.c:5")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda data: data[:8] + b"none" + data[12:], "was counted by another build of kernel"),
        (lambda data: data[:-30], "; the file ends"),
        (lambda data: b"none" + data[4:], "want a file of gcov"),
    ],
)
def test_counters_of_another_build_and_damaged_ones(
    run: Run, counters: bytes, change: Callable[[bytes], bytes], error: str
) -> None:
    (run.points[0].path / layout.COVERAGE).write_bytes(packed(change(counters)))
    with pytest.raises(TestbedError, match=error):
        called(run.path)
    (run.points[0].path / layout.COVERAGE).write_bytes(packed(counters)[:-9])
    with pytest.raises(TestbedError, match="the file is cut or larger"):
        called(run.path)
