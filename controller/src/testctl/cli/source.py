# SPDX-License-Identifier: Apache-2.0
"""--source of the commands that run plans: the kernel of a tree of the user's."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from testctl_agent.spec.errors import PlanError

from testctl.lab import git_tree
from testctl.lab.kernel import CHANGED, Kernel
from testctl.lab.source import split_revision
from testctl.lab.tree_kernel import build_tree
from testctl.system.text import first_of

METAVAR = "DIR[@REV]"
MOST = 20
"""Names of files that a run keeps."""
HELP = "run on the kernel of this tree, or of a git revision of it; what changed is built first"


def built(text: str, variant: str = "") -> Kernel:
    """The kernel of DIR[@REV], or a variant of it, with lines about its build.  Raises PlanError, TestbedError."""
    with BuildProgress() as progress:
        kernel, changed = build_tree(text, progress, os.cpu_count() or 1, variant)
    what = "" if changed is None else f"; changed since the last build: {first_of(changed, 8) or 'nothing'}"
    print(f"kernel of {text}: {kernel.release or '?'}, {kernel.binary}{what}", file=sys.stderr)
    return kernel


def described(text: str, kernel: Kernel) -> dict[str, str]:
    """{"source", "commit", "uncommitted", "changed", "key"} of the kernel of DIR[@REV], as far as they are known.

    source       as given, but with an absolute path
    commit       of a git checkout; uncommitted: files that differ from it
    changed      compiled files that differ from the build before
    key          of the kernel, which is the same for the same files
    """
    directory, revision = split_revision(text)
    tree = {"source": f"{directory.absolute()}{f'@{revision}' if revision else ''}"}
    if git_tree.is_repository(directory):
        with suppress(PlanError):  # there is no commit yet
            tree["commit"] = git_tree.commit_id(directory, revision or "HEAD")
            tree["uncommitted"] = "" if revision else " ".join(git_tree.changed(directory, tree["commit"], ""))
    file = kernel.directory / CHANGED
    tree["changed"] = " ".join(file.read_text(encoding="utf-8").split()) if file.is_file() else ""
    return {name: _first(value) for name, value in tree.items() if value} | {"key": kernel.key}


def _first(names: str) -> str:
    listed = names.split(" ")
    return names if len(listed) <= MOST else f"{' '.join(listed[:MOST])} and {len(listed) - MOST} more"


class BuildProgress:
    """The progress of a build: a bar on a terminal, a line every tenth elsewhere."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
            console=Console(stderr=True), disable=not sys.stderr.isatty(),
        )  # fmt: skip
        self._task = self._bar.add_task("", total=None)
        self._printed = -1

    def __enter__(self) -> BuildProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        self._bar.update(self._task, description=what, completed=done, total=total)
        tenth = 10 * done // total
        if self._bar.disable and tenth != self._printed:
            self._printed = tenth
            print(f"{what}: {100 * done // total} %", file=sys.stderr, flush=True)
