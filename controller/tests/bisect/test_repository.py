# SPDX-License-Identifier: Apache-2.0
"""git's bisection without files in a worktree of its own, and ends that can't be bisected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testctl.bisect.repository import HOME, WORKTREE, Mark, between, bisection, commit, parent
from testctl.lab import git_tree
from testctl_agent.spec.errors import PlanError

from controller.tests.bisect import trees


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A tree and its eight commits."""
    tree = tmp_path / "tree"
    ids = [trees.new_tree(tree)]
    ids += [trees.commit(tree, f"commit {number}", net__tcp_c=f"{number}\n") for number in range(1, 8)]
    return tree, ids


def bisected(
    tree: Path, ids: list[str], home: Path, first_bad: int, skipped: tuple[int, ...] = ()
) -> tuple[str, list[str]]:
    """(first bad commit, those that are undecided)."""
    with bisection(tree, ids[0], ids[-1], home) as git:
        while not git.first_bad and not git.undecided:
            number = ids.index(git.candidate)
            mark: Mark = "skip" if number in skipped else "bad" if number >= first_bad else "good"
            git.mark(ids[number], mark)
        assert "git bisect start" in git.log
        return git.first_bad, git.undecided


@pytest.mark.parametrize("first_bad", range(1, 8))
def test_every_commit_can_be_the_first_bad_one(history: tuple[Path, list[str]], tmp_path: Path, first_bad: int) -> None:
    tree, ids = history
    assert bisected(tree, ids, tmp_path, first_bad) == (ids[first_bad], [])


def test_a_skipped_commit_elsewhere_changes_nothing(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    tree, ids = history
    assert bisected(tree, ids, tmp_path, 5, skipped=(3,)) == (ids[5], [])


def test_a_skipped_commit_just_before_leaves_both_possible(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    tree, ids = history
    first, possible = bisected(tree, ids, tmp_path, 4, skipped=(3,))
    assert first == ""
    assert sorted(possible) == sorted([ids[3], ids[4]])


def test_the_user_s_repository_stays_as_it_is(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Files, index, HEAD and refs; a hook of the user's does not run; a worktree that was killed is no obstacle."""
    tree, ids = history
    (tree / "net" / "tcp.c").write_text("my edit\n")
    (tree / "mine").write_text("untracked\n")
    hook = tree / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n")
    hook.chmod(0o755)
    trees.git(tree, "worktree", "add", "-q", "--no-checkout", "--detach", str(tmp_path / "bisection"), ids[0])
    shutil.rmtree(tmp_path / "bisection")
    (tmp_path / "hook-ran").unlink(missing_ok=True)

    def state() -> list[str]:
        words = (["status", "--porcelain"], ["for-each-ref"], ["rev-parse", "HEAD", "--abbrev-ref", "HEAD"], ["diff"])
        return [trees.git(tree, *one) for one in words]

    before = state()
    assert bisected(tree, ids, tmp_path, 2)[0] == ids[2]
    assert state() == before
    assert trees.git(tree, "worktree", "list").count("\n") == 0
    assert not (tmp_path / "hook-ran").exists()


def test_ends_that_cannot_be_bisected(history: tuple[Path, list[str]]) -> None:
    tree, ids = history
    first, last = commit(tree, ids[0]), commit(tree, "HEAD")
    assert between(tree, first, last) == 7
    with pytest.raises(PlanError, match=r"want two commits; got .* commit 7 twice"):
        between(tree, last, last)
    with pytest.raises(PlanError, match="it is the other way round: swap the two"):
        between(tree, last, first)
    trees.git(tree, "checkout", "-q", "--orphan", "other")
    other = commit(tree, trees.commit(tree, "another history"))
    with pytest.raises(PlanError, match="the two are on different branches"):
        between(tree, first, other)
    with pytest.raises(PlanError, match="want a git revision"):
        commit(tree, "no-such-revision")


def test_what_is_read_of_commits(history: tuple[Path, list[str]]) -> None:
    tree, ids = history
    one = commit(tree, "HEAD~1")
    assert (one.id, one.title, one.author, one.words) == (ids[6], "commit 6", "Tester", f"{ids[6][:12]} commit 6")
    assert parent(tree, ids[6]) == ids[5]
    assert parent(tree, ids[0]) == ""
    assert git_tree.changed(tree, ids[0], ids[6]) == ["net/tcp.c"]


def test_another_repository_that_the_environment_names_is_not_meant(
    history: tuple[Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where git runs a hook."""
    tree, ids = history
    trees.new_tree(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert git_tree.commit_id(tree, "HEAD") == ids[-1]
    assert git_tree.changed(tree, ids[0], "") == ["net/tcp.c"]


def test_records_of_other_worktrees_stay(history: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Their disk may not be mounted; that of a bisection that was killed goes."""
    tree, ids = history
    away, killed = tmp_path / "disk" / "mine", tmp_path / f"{HOME}killed" / WORKTREE
    for worktree in (away, killed):
        trees.git(tree, "worktree", "add", "--quiet", "--detach", str(worktree))
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    shutil.rmtree(killed.parent)
    bisected(tree, ids, tmp_path, 3)
    (tmp_path / "unmounted").rename(tmp_path / "disk")
    assert trees.git(away, "rev-parse", "HEAD") == ids[-1]
    assert str(killed) not in trees.git(tree, "worktree", "list")
