# SPDX-License-Identifier: Apache-2.0
"""What a run keeps of the tree whose kernel it ran on."""

from __future__ import annotations

from pathlib import Path

from testctl.cli.source import MOST, described
from testctl.compare.comparability import made_with
from testctl.lab.kernel import CHANGED, Kernel
from testctl.results import Run

from controller.tests.bisect import trees


def test_a_tree_is_named_by_its_commit_and_what_differs_from_it(tmp_path: Path) -> None:
    tree, kernel = tmp_path / "linux", Kernel("source", "0123", tmp_path / "kernel")
    trees.new_tree(tree)
    commit = trees.commit(tree, "a release", net__tcp_c="6.12", README="text")
    kernel.directory.mkdir()
    known = {"source": str(tree), "commit": commit, "key": "0123"}
    assert described(str(tree), kernel) == known
    (tree / "net" / "tcp.c").write_text("another")
    (kernel.directory / CHANGED).write_text("net/tcp.c\n")
    now = known | {"uncommitted": "net/tcp.c", "changed": "net/tcp.c"}
    assert described(str(tree), kernel) == now
    assert described(f"{tree}@HEAD", kernel) == known | {"source": f"{tree}@HEAD", "changed": "net/tcp.c"}
    versions = made_with(Run(tmp_path, {"versions": {"tree": now}}, ()))
    assert versions["tree's uncommitted"] == "net/tcp.c"


def test_a_repository_may_have_no_commit_yet(tmp_path: Path) -> None:
    (tmp_path / "linux").mkdir()
    trees.git(tmp_path / "linux", "init", "-q")
    kernel = Kernel("source", "0123", tmp_path / "kernel")
    assert described(str(tmp_path / "linux"), kernel) == {"source": str(tmp_path / "linux"), "key": "0123"}


def test_of_many_files_the_first_are_named(tmp_path: Path) -> None:
    kernel = Kernel("source", "0123", tmp_path)
    (tmp_path / CHANGED).write_text("".join(f"net/{number}.c\n" for number in range(MOST + 5)))
    found = described(str(tmp_path), kernel)
    assert found["changed"].startswith("net/0.c net/1.c ")
    assert found["changed"].endswith(f"net/{MOST - 1}.c and 5 more")
    assert "commit" not in found, "it is no checkout of git"
