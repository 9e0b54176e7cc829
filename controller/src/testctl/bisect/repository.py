# SPDX-License-Identifier: Apache-2.0
"""The commits of a kernel tree, and git's own bisection of them in a worktree of its own without files.

The user's checkout, index, HEAD and refs stay as they are: the worktree has its own HEAD and its own refs/bisect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.lab.git_tree import commit_id, git

Mark = Literal["good", "bad", "skip"]

_FIRST_BAD = re.compile(r"^# first bad commit: \[([0-9a-f]{7,64})\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{7,64})\]", re.MULTILINE)
HOME, WORKTREE = "testctl-bisect-", "bisection"
"""The temporary directory of a bisection begins so; the worktree in it."""


@dataclass(frozen=True)
class Commit:
    """A commit: its id, the first line of its message, its author and the day of the author's."""

    id: str
    title: str
    author: str
    date: str

    @property
    def words(self) -> str:
        return f"{self.id[:12]} {self.title}"


def commit(directory: Path, revision: str) -> Commit:
    """Raises PlanError when there is no such commit."""
    full = commit_id(directory, revision)
    parts = git(directory, "log", "-1", "--format=%H%x00%s%x00%an%x00%as", full).rstrip("\n").split("\0")
    return Commit(*parts)


def parent(directory: Path, of: str) -> str:
    """The id of a commit's first parent; "" when it has none."""
    commits = git(directory, "rev-list", "--parents", "--max-count=1", of).split()
    return commits[1] if len(commits) > 1 else ""


def between(directory: Path, good: Commit, bad: Commit) -> int:
    """How many commits could be the first bad one.  Raises PlanError for ends that can't be bisected."""
    if good.id == bad.id:
        raise PlanError(f"--good, --bad: want two commits; got {good.words} twice")
    if _is_ancestor(directory, bad.id, good.id):
        raise PlanError(
            f"--good {good.words}: want an ancestor of --bad {bad.words}; it is the other way round: swap the two"
        )
    if not _is_ancestor(directory, good.id, bad.id):
        raise PlanError(
            f"--good {good.words}: want an ancestor of --bad {bad.words}; the two are on different branches"
        )
    return int(git(directory, "rev-list", "--count", f"{good.id}..{bad.id}"))


def _is_ancestor(directory: Path, first: str, second: str) -> bool:
    try:
        return first in git(directory, "merge-base", "--all", first, second).split()
    except TestbedError:  # two histories without a common commit
        return False


class Bisection:
    """git's bisection: a candidate, until each has a mark."""

    def __init__(self, worktree: Path) -> None:
        self._worktree = worktree

    @property
    def candidate(self) -> str:
        return git(self._worktree, "rev-parse", "--verify", "BISECT_HEAD").strip()

    def mark(self, of: str, mark: Mark) -> None:
        try:
            git(self._worktree, "bisect", mark, of)
        except TestbedError:  # git's exit code when only skipped commits are left
            if not self.undecided:
                raise

    @property
    def log(self) -> str:
        """As `git bisect log` prints it, for `git bisect replay`."""
        return git(self._worktree, "bisect", "log")

    @property
    def first_bad(self) -> str:
        """The id of the first bad commit; "" while it is not known."""
        match = _FIRST_BAD.search(self.log)
        return match[1] if match else ""

    @property
    def undecided(self) -> list[str]:
        """The commits of which git can't say which is the first bad one, because some were skipped; [] otherwise."""
        return _POSSIBLE.findall(self.log)


@contextmanager
def bisection(directory: Path, good: str, bad: str, home: Path) -> Iterator[Bisection]:
    """Begin a bisection in a worktree below `home`, which is removed afterwards.

    Git's records of other worktrees stay, also of those that are not there: they may be on a disk that is not mounted.
    """
    worktree = home / WORKTREE
    # Worktrees of bisections that were killed: their directories are gone.
    listed = git(directory, "worktree", "list", "--porcelain").splitlines()
    paths = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    for path in paths:
        if path.name == WORKTREE and path.parent.name.startswith(HOME) and not path.exists():
            git(directory, "worktree", "remove", "--force", str(path))
    git(directory, "worktree", "add", "--quiet", "--force", "--no-checkout", "--detach", str(worktree), bad)
    try:
        git(worktree, "bisect", "start", "--no-checkout", bad, good)
        yield Bisection(worktree)
    finally:
        with suppress(TestbedError):
            git(directory, "worktree", "remove", "--force", str(worktree))
