# SPDX-License-Identifier: Apache-2.0
"""Revisions of a git repository, written out elsewhere: its checkout, its index and its refs stay as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

from testctl_agent.spec.errors import PlanError, TestbedError

from testctl.system.subprocesses import run

_PLAIN = ("core.sparseCheckout=false", "core.fsmonitor=false", "core.autocrlf=false")
"""Settings of a user's repository that would make a checkout another one."""
_OWN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
"""Of the user's environment: they would name another repository."""
_TIMEOUT_S = 1800.0


def is_repository(directory: Path) -> bool:
    """Whether git is installed and a directory is the top of a checkout, not only below one."""
    return (directory / ".git").exists() and shutil.which("git") is not None


def commit_id(directory: Path, revision: str) -> str:
    """The id of the commit that a revision means.  Raises PlanError if there is none."""
    git(directory, "rev-parse", "--git-dir")
    try:
        commit = git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except TestbedError as error:
        raise PlanError(f"{directory}: want a git revision, such as v6.12 or HEAD~3; got {revision!r}") from error
    return commit.strip()


def tree_id(directory: Path, commit: str) -> str:
    """The id of the directory's files as they are in a commit."""
    return git(directory, "rev-parse", "--verify", "--end-of-options", f"{commit}:./").strip()


def has(directory: Path, commit: str, name: str) -> bool:
    """Whether a commit has a file or directory below the directory."""
    return bool(git(directory, "ls-tree", "--name-only", commit, f"./{name}").strip())


def names(directory: Path) -> list[str]:
    """The files of a checkout that git tracks, and those that it would not ignore."""
    listed = git(directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [name for name in listed.split("\0") if name]


def write(directory: Path, commit: str, where: Path, index: Path) -> None:
    """Make `where` the files of a commit.  What differs from the last commit written there is written anew.

    index: git's index of the files that are there
    """
    where.mkdir(parents=True, exist_ok=True)
    repository = git(directory, "rev-parse", "--absolute-git-dir").strip()
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    argv = ["env", f"GIT_INDEX_FILE={index}", "git", *(option for setting in _PLAIN for option in ("-c", setting))]
    argv += [f"--git-dir={repository}", f"--work-tree={where}"]
    run([*argv, "read-tree", "--reset", "-u", tree_id(directory, commit)], timeout_s=1800)


def changed(directory: Path, commit: str, other: str) -> list[str]:
    """The files that differ between a commit and another one, or the files as they are (other: "")."""
    listed = git(directory, *_diff(commit, other), "--name-only", "-z", "--", ".")
    return [name for name in listed.split("\0") if name]


def unchanged(directory: Path) -> str:
    """The commit of a checkout whose files are its commit's and no others, but for those that git ignores; else ""."""
    if not is_repository(directory) or git(directory, "ls-files", "--others", "--exclude-standard"):
        return ""
    # Files marked as unchanged or to be skipped (small letters, S) may differ without a word of git diff.
    if any(not line.startswith("H ") for line in git(directory, "ls-files", "-v").splitlines()):
        return ""
    try:
        commit = commit_id(directory, "HEAD")
    except PlanError:  # there is no commit yet
        return ""
    return "" if changed(directory, commit, "") else commit


def difference(directory: Path, commit: str, other: str, name: str) -> str:
    """The git diff, without context, of such a file."""
    return git(directory, *_diff(commit, other), "--unified=0", "--", name)


def _diff(commit: str, other: str) -> list[str]:
    options = [option for setting in _PLAIN for option in ("-c", setting)]
    plain = ["--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--relative"]
    return [*options, "diff", *plain, commit, *([other] if other else [])]


def text(directory: Path, commit: str, name: str) -> str:
    return git(directory, "show", f"{commit}:./{name}")


def archive(directory: Path, commit: str, name: str, file: Path) -> None:
    """Write what a commit has below a name to a tar file."""
    git(directory, "archive", "--format=tar", f"--output={file}", commit, "--", name)


def git(directory: Path, *argv: str) -> str:
    """What git prints.  Raises TestbedError with git's words."""
    if shutil.which("git") is None:
        raise TestbedError("git is not installed, and revisions need it; install it with: apt-get install git")
    unset = [word for name in _OWN for word in ("-u", name)]
    return run(
        ["env", *unset, "git", "-C", str(directory), "-c", "core.hooksPath=/dev/null", *argv], timeout_s=_TIMEOUT_S
    )
