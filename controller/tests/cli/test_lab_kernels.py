# SPDX-License-Identifier: Apache-2.0
"""testctl lab list, testctl lab rm; with a cache of kernels without content."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.lab import kernel, workplace

Call = Callable[..., tuple[int, str, str]]
KEYS = ("0123456789abcdef", "fedcba9876543210")


def made(name: str, key: str = KEYS[0], own_tree: bool = False) -> Path:
    """What a build leaves."""
    directory = kernel.name_file(name).parent / f"{name}-{key}"
    directory.mkdir(parents=True)
    (directory / "linux").write_bytes(b"x" * 1000)
    (directory / "release").write_text("6.12.3\n", encoding="ascii")
    if own_tree:
        kernel.remember(kernel.Kernel(name, key, directory))
    return directory


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTCTL_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def test_no_kernel(command: Call, cache: Path) -> None:
    assert command("lab", "list") == (0, "no kernel is built; build one with: testctl lab build\n", "")


def test_list(command: Call, cache: Path) -> None:
    mine, old = made("mine", own_tree=True), made("mine", KEYS[1])
    (cache / f"mine-{KEYS[0]}.building").mkdir()
    (cache / f"mine-{KEYS[0]}.removed").mkdir()
    (cache / f"mine-{KEYS[0]}.removed" / "linux").touch()
    found = json.loads(command("lab", "list", "--json")[1])
    assert [(one["directory"], one["used"], one["default"]) for one in found] == [
        (str(mine), True, False),
        (str(old), False, False),
        *((f"{mine}{part}", False, False) for part in (".building", ".removed")),
    ]
    assert [one["whole"] for one in found] == [True, True, False, False]
    assert (found[0]["release"], found[0]["own_tree"]) == ("6.12.3", True)
    listed = command("lab", "list")[1].splitlines()
    assert max(map(len, listed[:-1])) <= 80
    assert [line.split()[0] for line in listed[1:5]] == [
        mine.name, old.name, f"{mine.name}.building", f"{mine.name}.removed",
    ]  # fmt: skip
    assert "yes, own tree" in listed[1]
    assert listed[-1].startswith(f"in {cache}; ")


def test_rm(command: Call, cache: Path) -> None:
    made("mine", own_tree=True)
    old, other = made("mine", KEYS[1]), made("other")
    code, _, said = command("lab", "rm", "mine")
    assert code == 2
    assert said.startswith(
        f"kernel 'mine': want one of the built kernels; there are mine-{KEYS[0]}, mine-{KEYS[1]} (in"
    )
    assert command("lab", "rm", old.name)[0] == 0
    assert not old.exists()
    assert command("lab", "rm", "mine")[0] == 0
    assert not kernel.name_file("mine").exists()
    assert sorted(path.name for path in cache.iterdir() if path.is_dir()) == [other.name]


def test_what_a_killed_build_left(command: Call, cache: Path) -> None:
    """It is shown and removed by its directory's name, but not while it is built."""
    mine = made("mine", own_tree=True)
    left = cache / f"6.12-{KEYS[1]}.building"
    (left / "source").mkdir(parents=True)
    (left / "source" / "file").write_bytes(b"x" * 3_000_000)
    with workplace.lock(cache / f"6.12-{KEYS[1]}.lock"):
        assert left.name not in command("lab", "list")[1]
        assert command("lab", "rm", left.name)[0] == 2
    (line,) = (line for line in command("lab", "list")[1].splitlines() if left.name in line)
    assert "3.0 MB" in line
    assert "its build was killed" in line
    assert command("lab", "rm", left.name) == (0, f"removed {left} (3.0 MB)\n", "")
    assert (left.exists(), mine.exists()) == (False, True)


def test_rm_of_those_of_trees(command: Call, cache: Path) -> None:
    other = made("6.12")
    of_trees = [made("source"), made("source", KEYS[1]), made("source-trace"), made("mine", own_tree=True)]
    said = command("lab", "rm", "--source")[1]
    assert [str(path) in said for path in of_trees] == [True] * 4
    assert [path.exists() for path in (*of_trees, other)] == [False] * 4 + [True]
    assert not kernel.name_file("mine").exists()
    assert command("lab", "rm", "--source")[1] == "nothing to remove: no kernel was built with --source\n"


def test_rm_of_the_unused(command: Call, cache: Path) -> None:
    mine, old = made("mine", own_tree=True), made("mine", KEYS[1])
    assert command("lab", "rm", "--unused")[1].startswith(f"removed {old} (")
    assert (mine.exists(), old.exists()) == (True, False)
    assert command("lab", "rm", "--unused")[1] == "nothing to remove: every kernel is used\n"


@pytest.mark.parametrize("words", [("none",), (), ("",), ("../x",)])
def test_rm_of_what_is_not_there(command: Call, cache: Path, words: tuple[str, ...]) -> None:
    made("mine", own_tree=True)
    assert command("lab", "rm", *words)[0] == 2
    assert (cache / f"mine-{KEYS[0]}").exists()


def test_a_shell_without_a_terminal_is_refused(command: Call) -> None:
    said = "lab shell: want a terminal to read from; without one: testctl lab exec -- COMMAND\n"
    assert command("lab", "shell") == (2, "", said)
