# SPDX-License-Identifier: Apache-2.0
"""Git repositories that look like kernel trees."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(tree: Path, *words: str) -> str:
    argv = ["git", "-C", str(tree), "-c", "user.name=Tester", "-c", "user.email=tester@example.org", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def commit(tree: Path, title: str, **files: str) -> str:
    """A commit with these files (a__b_c is a/b.c), and its id."""
    for name, text in files.items():
        path = tree / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "--allow-empty", "-m", title)
    return git(tree, "rev-parse", "HEAD")


def new_tree(tree: Path) -> str:
    """A repository with one commit; its id."""
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    return commit(tree, "the first", arch__um__Kconfig="", net__tcp_c="0\n", net__sctp_c="0\n", README="\n")
