# SPDX-License-Identifier: Apache-2.0
"""testctl installed from wheels, used outside of a checkout: the same files, the same digests."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.test_ordinary_user import PLAN, UID, USER

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def run(argv: list[str], where: Path, env: dict[str, str] | None = None, code: int = 0) -> str:
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True, timeout=600, check=False,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(where), **(env or {})})  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that every user can reach."""
    where = tmp_path_factory.mktemp("installed")
    for path in (where, *where.parents):
        if path.stat().st_uid == os.geteuid() and path not in (Path("/"), Path("/tmp"), Path("/root")):
            path.chmod(path.stat().st_mode | 0o055)
    return where


@pytest.fixture(scope="module")
def wheels(place: Path) -> dict[str, Path]:
    """The wheels of copies of the distributions, which lie beside copies of the files that they take."""
    tree = place / "tree"
    unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "data", "tests", "tgen-sanitized")
    for name in ("agents", "controller", "lab", "plans"):
        shutil.copytree(ROOT / name, tree / name, ignore=unwanted)
    (tree / "agents" / "tgen" / "tgen").unlink()
    shutil.copytree(ROOT / "p4" / "build", tree / "p4" / "build")
    argv = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(place / "wheels")]
    run([*argv, str(tree / "agents"), str(tree / "controller")], place)
    found = {path.name.partition("-")[0]: path for path in (place / "wheels").glob("*.whl")}
    shutil.rmtree(tree)
    return found


@pytest.fixture(scope="module")
def testctl(place: Path, wheels: dict[str, Path]) -> Path:
    """The command of a fresh environment that has the wheels, and the libraries of this one by a .pth file.

    Editable installations of this environment are not seen: a .pth file of a directory is not read.
    """
    venv = place / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", str(venv)], place)
    purelib = venv / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    libraries = place / "libraries"
    libraries.mkdir()
    for path in Path(site.getsitepackages()[0]).iterdir():
        if not path.name.startswith(("testctl", "__editable__")):
            (libraries / path.name).symlink_to(path)
    (purelib / "libraries.pth").write_text(f"{libraries}\n")
    run([*PIP, "--python", str(venv / "bin" / "python"), "install", "--no-deps", "--no-index",
         *map(str, wheels.values())], place)  # fmt: skip
    return venv / "bin" / "testctl"


@pytest.fixture
def empty(place: Path, request: pytest.FixtureRequest) -> Path:
    """A directory in which nothing is, and in which everybody may write."""
    where = place / request.node.name
    where.mkdir()
    where.chmod(0o777)
    return where


def of_the_checkout(expression: str) -> str:
    """An expression's value in this environment; {expression} may use testctl.testbeds.lab."""
    return run([sys.executable, "-c", f"from testctl.testbeds import lab; print({expression})"], ROOT)


def test_wheels_have_the_files_that_git_has(wheels: dict[str, Path]) -> None:
    tracked = run(["git", "ls-files", "lab", "plans", "p4/build"], ROOT).split()
    wanted = {name for name in tracked if not name.endswith((".clang-format", ".sha256"))} | {"agents/tgen/tgen"}
    packed = set()
    for package, wheel in wheels.items():
        prefix = f"{package}/_data/"
        names = zipfile.ZipFile(wheel).namelist()
        packed |= {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert packed == wanted


def test_an_sdist_has_them_too(tmp_path: Path, wheels: dict[str, Path]) -> None:
    for name, package in (("agents", "testctl_agent"), ("controller", "testctl")):
        copy = tmp_path / name
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.egg-info", "build", "tests"))
        for other in ("lab", "plans", "p4", "agents/tgen"):
            if not (copy / other).exists():
                shutil.copytree(ROOT / other, copy / other)
        run([sys.executable, "setup.py", "-q", "sdist", "--dist-dir", str(tmp_path / "dist")], copy / name)
        (archive,) = (tmp_path / "dist").glob(f"{package}-*.tar.gz")
        shutil.unpack_archive(archive, copy / "out")  # Debian 12's Python has no filters of tarfile
        (source,) = (copy / "out").iterdir()
        argv = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(copy / "wheel"), str(source)]
        run(argv, tmp_path)
        (again,) = (copy / "wheel").glob("*.whl")
        assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheels[package]).namelist())


def test_files_lie_in_the_package(testctl: Path, empty: Path) -> None:
    root = Path(run([str(testctl), "files"], empty).strip())
    assert root.is_relative_to(testctl.parents[1])
    said = run([str(testctl), "plan", str(root / "plans" / "one_flow.yaml"), "--json"], empty)
    assert json.loads(said)
    assert "copy testctl's files" in run([str(testctl), "cc", "new", "mine"], empty, code=2)


def test_files_of_ones_own(testctl: Path, empty: Path) -> None:
    own = {"TESTCTL_ROOT": str(empty / "own")}
    assert "TESTCTL_ROOT=" in run([str(testctl), "files", "own"], empty)
    assert "there already" in run([str(testctl), "files", "own"], empty, code=2)
    assert run([str(testctl), "files"], empty, own) == f"{empty}/own\n"
    run([str(testctl), "cc", "new", "mine"], empty, own)
    assert (empty / "own" / "lab" / "cc" / "tcp_mine.c").is_file()
    wrong = run([str(testctl), "files"], empty, {"TESTCTL_ROOT": str(empty / "other")}, code=3)
    assert "TESTCTL_ROOT: want a directory with lab/kernel/ in it" in wrong


def test_the_code_has_the_checkouts_key(testctl: Path, empty: Path) -> None:
    program = "from testctl.testbeds import lab; print(lab.code_hash())"
    found = run([str(testctl.with_name("python")), "-c", program], empty)
    assert found == of_the_checkout("lab.code_hash()")


def test_what_is_missing_without_a_compiler(empty: Path) -> None:
    said = run([sys.executable, str(ROOT / "agents" / "setup.py"), "-q", "build_py", "--build-lib", str(empty / "lib")],
               ROOT / "agents", {"PATH": str(empty)}, code=1)  # fmt: skip
    assert "agents/tgen/tgen can't be built: make is not installed (Debian: apt install build-essential)" in said


@pytest.fixture(scope="module")
def digest(place: Path) -> str:
    """Of a run of PLAN by the checkout."""
    other = place / "of_the_checkout"
    other.mkdir()
    return str(lab_run(other, lambda words: [sys.executable, "-m", "testctl.cli.main", *words])["digest"])


@pytest.mark.lab
def test_a_point_has_the_checkouts_digest(testctl: Path, empty: Path, digest: str) -> None:
    summary = lab_run(empty, lambda words: [str(testctl), *words])
    assert summary["points"][0]["verdict"] == "pass"
    assert summary["digest"] == digest


@pytest.mark.root
@pytest.mark.lab
def test_an_ordinary_user_has_it_too(testctl: Path, empty: Path, digest: str) -> None:
    home = empty / "home"
    home.mkdir()
    os.chown(home, UID, UID)
    summary = lab_run(home, lambda words: [*USER, str(testctl), *words])
    assert summary["digest"] == digest
    assert {path.stat().st_uid for path in (home / "results").rglob("*")} == {UID}


def lab_run(where: Path, words: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    """A run of PLAN in a directory that has nothing but it, with kernels of this machine's cache; its summary."""
    from testctl.lab.built import built

    kernel = built("6.12")
    assert kernel is not None, "kernel 6.12 is not built: tools/setup 6.12"
    cache = where / "cache"
    cache.mkdir(exist_ok=True)
    if not (cache / "kernels").exists():
        (cache / "kernels").symlink_to(kernel.directory.parent)
    os.chown(cache, where.stat().st_uid, -1)
    (where / "plan.yaml").write_text(PLAN)
    env = {"TESTCTL_CACHE": str(cache), "TMPDIR": str(where)}
    summary: dict[str, Any] = json.loads(run(words(["run", "plan.yaml", "--json"]), where, env))
    return summary
