# SPDX-License-Identifier: Apache-2.0
"""testctl prune: which runs take the space of results/, and removes old ones."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.cli import complete
from testctl.cli.options import AsJson, Results
from testctl.core.words import counted
from testctl.results import layout, shapes
from testctl.results.reader import read_json
from testctl.system.text import first_of

REMOVED = ".removed-"
"""What the name of a run begins with while its files are removed."""

GOING = "in progress"
"""Why such a run stays; it is not one of the N newest."""

Files = Mapping[tuple[int, int], tuple[int, int]]
"""(device, inode) -> (bytes, links)."""


@dataclass(frozen=True)
class Stored:
    """A run on disk.  stays: the reason why it is never removed, or ""."""

    path: Path
    plan: str
    began: datetime
    verdict: str
    nightly: bool
    files: Files = field(repr=False)
    stays: str = ""

    @property
    def size(self) -> int:
        """Bytes of its files, also of those that another run has too."""
        return sum(size for size, _ in self.files.values())


def prune(
    names: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]…", help="these runs", autocompletion=complete.runs),
    ] = None,
    results: Results = Path("results"),
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, metavar="N", help="all but the N newest runs of each plan")
    ] = None,
    older: Annotated[
        str | None, typer.Option("--older", metavar="TIME", help="runs that are older, such as 30d or 12h")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="remove them; without it they are only listed")] = False,
    as_json: AsJson = False,
) -> None:
    """List what runs and built kernels take, and remove old runs with --yes.

    With both --keep and --older only runs go that both name.  A run in progress, one that a link such as `latest`
    leads to, and the last nightly run of a plan always stay.
    """
    now = datetime.now(UTC)
    limit = now - _age(older) if older is not None else None
    if names:
        if keep is not None or limit is not None:
            raise PlanError("prune: want either RUN or --keep and --older; got both")
        runs, others = [_named(path) for path in dict.fromkeys(names)], list[str]()
        going = runs
    else:
        if not results.is_dir() or (results / layout.POINTS).is_dir():
            raise PlanError(f"--results {results}: want a directory of runs; there is none")
        runs, others = _runs(results)
        going = _chosen(runs, keep, limit) if keep is not None or limit is not None else []
    freed = _freed(going)
    if yes:
        for run in going:
            _remove(run.path)
        for left in results.glob(f"{REMOVED}*"):  # by a command that was interrupted
            shutil.rmtree(left, ignore_errors=True)
    if as_json:
        print(json.dumps([_json(run, run in going, yes) for run in runs], indent=1))
        return
    if runs:
        Console(width=None if os.isatty(1) else 200, highlight=False).print(_table(runs, going, now, yes))
    if others:
        print(f"no runs, left alone: {first_of(others, 8)}")
    if going:
        what = f"{counted(len(going), 'run')}, {_megabytes(freed)}"
        print(f"removed {what}" if yes else f"would be removed: {what}; with --yes they are")
    elif keep is None and limit is None:
        print("choose what to remove with --keep N, with --older 30d, or by name")
    _print_kernels()


def _runs(results: Path) -> tuple[list[Stored], list[str]]:
    """(the runs of a directory, oldest first; the names of the directories and links that are none)."""
    linked = _linked(results)
    runs, others = [], []
    for path in sorted(results.iterdir()):
        if not layout.is_name(path.name) or path.name == layout.LATEST:
            continue
        run = None if path.is_symlink() else _stored(path, linked)
        if run is not None:
            runs.append(run)
        elif path.is_dir() and not path.is_symlink():
            others.append(path.name)
    runs.sort(key=lambda run: run.began)
    last_nightly = {run.plan: run.path for run in runs if run.nightly}
    kept = set(last_nightly.values())
    return [
        replace(run, stays=run.stays or "the last nightly run") if run.path in kept else run for run in runs
    ], others


def _named(path: Path) -> Stored:
    """A run that is to be removed.  Raises PlanError unless it is one that may go."""
    runs = _runs(path.absolute().parent)[0] if path.is_dir() and not path.is_symlink() else []
    run = next((run for run in runs if run.path.resolve() == path.resolve()), None)
    if run is None:
        raise PlanError(f"{path}: want the directory of a run; got {'a link' if path.is_symlink() else 'another'}")
    if run.stays:
        raise PlanError(f"{path}: want a run that may be removed; got one that stays: {run.stays}")
    return run


def _stored(path: Path, linked: Mapping[Path, str]) -> Stored | None:
    """The run in this directory; None: there is none."""
    going = path.name.endswith(layout.IN_PROGRESS)
    if not (path / layout.POINTS).is_dir() or not (path / (layout.PLAN if going else layout.SUMMARY)).is_file():
        return None
    try:
        summary = {} if going else read_json(path / layout.SUMMARY, shapes.SUMMARY)
    except PlanError:
        return None
    counts = summary.get("counts") or {}
    own = path.resolve()
    leading = next((reason for target, reason in linked.items() if own in (target, *target.parents)), "")
    return Stored(
        path,
        str(summary.get("plan") or path.name.removesuffix(layout.IN_PROGRESS).partition("-")[2]),
        _began(path, summary.get("started")),
        ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count),
        isinstance(summary.get("nightly"), Mapping),
        dict(_files(path)),
        GOING if going else leading,
    )


def _began(path: Path, started: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(started))
    except ValueError:
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _linked(results: Path) -> dict[Path, str]:
    """Where links among the runs lead to, with a sentence for each."""
    return {link.resolve(): f"{link.name} leads to it" for link in results.iterdir() if link.is_symlink()}


def _files(run: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for directory, _, names in os.walk(run):
        for name in names:
            with suppress(FileNotFoundError):  # of a run in progress
                stat = os.lstat(Path(directory, name))
                yield (stat.st_dev, stat.st_ino), (stat.st_size, stat.st_nlink)


def _chosen(runs: Sequence[Stored], keep: int | None, limit: datetime | None) -> list[Stored]:
    """The runs that go; runs: oldest first."""
    newest: list[Path] = []
    if keep is not None:
        for plan in {run.plan for run in runs}:
            newest += [run.path for run in runs if run.plan == plan and run.stays != GOING][-keep:]
    return [
        run for run in runs if not run.stays and run.path not in newest and (limit is None or run.began < limit)
    ]  # fmt: skip


def _freed(going: Iterable[Stored]) -> int:
    """Bytes that are free when these are gone: a resumed run shares files with another by hard links."""
    size: dict[tuple[int, int], tuple[int, int]] = {}
    uses: Counter[tuple[int, int]] = Counter()
    for run in going:
        size |= run.files
        uses.update(run.files.keys())
    return sum(bytes_ for key, (bytes_, links) in size.items() if uses[key] >= links)


def _remove(run: Path) -> None:
    """It is no run any more before its first file is gone.  Raises TestbedError."""
    aside = run.with_name(f"{REMOVED}{run.name}")
    try:
        durable.rename(run, aside)
        shutil.rmtree(aside)
    except OSError as error:
        raise TestbedError(f"{run}: can't remove it: {error.strerror}") from error


def _table(runs: Sequence[Stored], going: Sequence[Stored], now: datetime, yes: bool) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold")
    for heading in ("size", "age"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdicts", overflow="fold")
    table.add_column("", overflow="fold")
    for run in runs:
        what = (
            ("removed" if yes else "would be removed") if run in going else f"stays: {run.stays}" if run.stays else ""
        )
        table.add_row(run.path.name, _megabytes(run.size), _old(now - run.began), run.verdict, what)
    return table


def _print_kernels() -> None:
    from testctl.lab.stored import stored

    kernels = stored()
    if not kernels:
        return
    unused = [kernel for kernel in kernels if not kernel.used]
    total = _megabytes(sum(kernel.size for kernel in kernels))
    print(f"{'1 built kernel takes' if len(kernels) == 1 else f'{len(kernels)} built kernels take'} {total}", end="")
    size = _megabytes(sum(kernel.size for kernel in unused))
    print(f"; {size} are of {len(unused)} that no plan gets: testctl lab rm --unused" if unused else "")


def _json(run: Stored, going: bool, yes: bool) -> dict[str, object]:
    return {
        "run": str(run.path), "plan": run.plan, "started": run.began.isoformat(), "bytes": run.size,
        "stays": run.stays, "removed": going and yes, "would_be_removed": going and not yes,
    }  # fmt: skip


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,4})(h|d|w)", text)
    if match is None:
        raise PlanError(f"--older: want a time such as 12h, 30d or 8w; got {text!r}")
    return timedelta(hours=int(match[1]) * {"h": 1, "d": 24, "w": 168}[match[2]])


def _old(age: timedelta) -> str:
    hours = age.seconds // 3600
    return counted(age.days, "day") if age.days else f"{hours} h" if hours else f"{age.seconds // 60} min"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
