# SPDX-License-Identifier: Apache-2.0
"""From names to directories: only what a listing of results/ shows can be opened.

No path is ever joined from a visitor's words: a name is looked up among those that are there.
Symbolic links are not followed, so that nothing outside of results/ is read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError

from testctl.results import layout
from testctl.results.reader import read_json


class Unknown(PlanError):
    """There is no run, point or file of that name."""


def check_results(root: Path) -> Path:
    """The directory of runs, made absolute.  Raises PlanError if there is none."""
    if not root.is_dir():
        raise PlanError(f"--results {root}: want a directory of runs; there is none")
    return root.resolve()


def runs(root: Path) -> dict[str, Path]:
    """The runs below results/ by the names of their directories, newest name first."""
    found = {name: path for name, path in _directories(root).items() if _is_run(path)}
    return dict(sorted(found.items(), reverse=True))


def run_path(root: Path, name: str) -> Path:
    """A run's directory.  `latest` is the run that the link of that name names.  Raises Unknown."""
    there = runs(root)
    if name == layout.LATEST and (link := root / name).is_symlink():
        name = os.readlink(link)
    if name not in there:
        raise Unknown(f"there is no run {name[:100]!r} here; it may have been removed, or still be under another name")
    return there[name]


def scorecards(root: Path) -> dict[str, Path]:
    """The directories below results/ that have the page of a scorecard and are no runs, newest name first."""
    with_page = {name: path for name, path in _directories(root).items() if own_file(path, layout.SCORECARD_PAGE)}
    return {name: with_page[name] for name in sorted(with_page, reverse=True) if not _is_run(with_page[name])}


def points(run: Path) -> dict[str, Path]:
    """The directories of a run's points, by id."""
    below = run / layout.POINTS
    return _directories(below) if _kind(below) == stat.S_IFDIR else {}


def point_path(run: Path, point: str) -> Path:
    """The directory of the point whose id starts so.  Raises Unknown: none does, or more than one."""
    there = points(run)
    found = [point] if point in there else [one for one in there if point and one.startswith(point)]
    if len(found) != 1:
        which = f"has {len(found)} points that begin with" if found else "has no finished point"
        raise Unknown(f"run {run.name} {which} {point[:100]!r}")
    return there[found[0]]


def own_file(directory: Path, name: str) -> Path | None:
    """A file of a listed directory, if it is a plain file (no link); `name` is one of the project's own."""
    path = directory / name
    return path if _kind(path) == stat.S_IFREG else None


def own_json(directory: Path, name: str) -> dict[str, Any]:
    """An object from such a file.  Raises PlanError when it is missing or can't be read."""
    path = own_file(directory, name)
    if path is None:
        raise PlanError(f"{directory.name}/{name}: want a plain file; there is none")
    return read_json(path)


def _directories(below: Path) -> dict[str, Path]:
    """The directories (no links) whose names a run or point can have."""
    found = {}
    try:
        with os.scandir(below) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and layout.is_name(entry.name):
                    found[entry.name] = below / entry.name
    except OSError as error:
        raise PlanError(f"{below.name}: can't be listed: {error.strerror}") from error
    return found


def _is_run(path: Path) -> bool:
    return _kind(path / layout.POINTS) == stat.S_IFDIR or any(own_file(path, n) for n in (layout.SUMMARY, layout.PLAN))


def _kind(path: Path) -> int:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return 0
