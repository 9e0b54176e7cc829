# SPDX-License-Identifier: Apache-2.0
"""Writes a run: `.in-progress` until one rename completes it, never changed afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import PlanError, TestbedError
from testctl_agent.system import durable

from testctl.results import layout
from testctl.results.atomic import check_place, naming_path, write_json, write_text

FREE_BYTES = 500_000_000
"""Default for the bytes that must be free before a run starts."""
_MAX_AT_ONCE = 99
"""Greatest number of runs of a plan that can start in one second."""


@dataclass(frozen=True)
class RunWriter:
    """A run that is being written; picklable, so that workers can hold it too.

    path    the directory while in progress, `<name>.in-progress`
    final   the directory once complete
    latest  the symbolic link to set when complete, or None
    """

    path: Path
    final: Path
    latest: Path | None

    @classmethod
    def create(cls, results_dir: Path, plan: str, *, need: int = FREE_BYTES, now: datetime | None = None) -> RunWriter:
        """Start `results_dir/<UTC time>-<plan>`.  Raises PlanError: no space, not writable."""
        latest = results_dir / layout.LATEST
        if latest.exists() and not latest.is_symlink():
            raise PlanError(f"{latest}: want a symbolic link to the newest run; got something else")
        moment = now or datetime.now(UTC)
        for number in range(1, _MAX_AT_ONCE + 1):
            final = results_dir / layout.run_name(plan, moment, number)
            path = _begun(final, need)
            if path is not None:
                return cls(path, final, latest)
        raise PlanError(f"{final}: the result directory exists already, and {_MAX_AT_ONCE} runs of this second")

    @classmethod
    def create_at(cls, final: Path, *, need: int = FREE_BYTES) -> RunWriter:
        """Start a run in a directory of the user's choice (`--out`); no `latest` link.  Raises PlanError."""
        if not final.name:
            raise PlanError(
                f"{final}: want the name of a directory for the run, which is made; got a directory that is there"
            )
        path = _begun(final, need)
        if path is None:
            there = final if _there(final) else in_progress(final)
            raise PlanError(f"{there}: the result directory exists already; results are never overwritten")
        return cls(path, final, None)

    @property
    def name(self) -> str:
        return self.final.name

    def write_plan(
        self,
        text: str,
        expanded: Mapping[str, Any] | Sequence[Any],
        topology: str = "",
        traces: Mapping[str, str] | None = None,
    ) -> None:
        """Keep the plan as given (its bytes, with comments), as expanded, the text of its own topology, and the
        values of the files that it names, which the expanded plan has by their paths."""
        with naming_path(self.path, "the plan was not kept; nothing was run"):
            write_text(self.path / layout.PLAN, text)
            names = {value: name for name, value in (traces or {}).items()}
            write_json(self.path / layout.EXPANDED, _by_name(expanded, names) if names else expanded)
            if topology:
                write_text(self.path / layout.TOPOLOGY, topology)
            if traces:
                write_json(self.path / layout.TRACES, traces)

    def write_versions(self, versions: Mapping[str, Any]) -> None:
        with naming_path(self.path, "the versions were not kept"):
            write_json(self.path / layout.VERSIONS, versions)

    def finish(self, summary: Mapping[str, Any]) -> Path:
        """Write summary.json, check for completeness, rename, set `latest`; returns the final directory.

        Raises TestbedError; the run then remains in progress.
        """
        listed = {str(point["id"]) for point in summary["points"]}
        written = {item.name for item in (self.path / layout.POINTS).iterdir() if not item.name.startswith(".")}
        if listed != written:
            odd = ", ".join(sorted(listed ^ written)[:5])
            raise TestbedError(f"{self.path}: want the same points in summary.json and points/; not in both: {odd}")
        kept = f"the finished points are kept in {self.path.name}, `--resume` uses them"
        with naming_path(self.path, f"the run is not complete; {kept}"):
            for left in (self.path / layout.POINTS).glob(".*"):
                shutil.rmtree(left)
            durable.sync(self.path / layout.POINTS)
            write_json(self.path / layout.SUMMARY, summary)
            if self.final.exists():
                raise TestbedError(f"{self.final}: the result directory appeared while the run went on; {kept}")
            durable.rename(self.path, self.final)
        if self.latest is not None:
            with naming_path(self.latest, f"{self.final} is complete, and this link does not lead to it"):
                durable.link(self.latest, self.final.name)
        return self.final

    def discard(self) -> None:
        """Remove a run that has no finished point (nothing half-written stays); else keep it for `--resume`."""
        points = self.path / layout.POINTS
        if self.path.is_dir() and not any(not item.name.startswith(".") for item in points.glob("*")):
            shutil.rmtree(self.path, ignore_errors=True)


def _begun(final: Path, need: int) -> Path | None:
    """Make the directory of a run in progress; None if that name exists, complete or not.

    Raises PlanError when it can't be made.
    """
    path = in_progress(final)
    if _there(final) or _there(path):
        return None
    check_place(final.parent, need)
    try:
        durable.make_directory(final.parent)
        path.mkdir()
        if _there(final):  # another run of that name has just been completed
            path.rmdir()
            return None
        durable.make_directory(path / layout.POINTS)
        durable.sync(path.parent)
    except FileExistsError:
        return None
    except OSError as error:
        raise PlanError(f"{path}: can't make the result directory: {error.strerror}") from error
    return path


def in_progress(final: Path) -> Path:
    """Path of a run until it is complete."""
    return final.with_name(final.name + layout.IN_PROGRESS)


def _there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _by_name(record: Any, names: Mapping[str, str]) -> Any:
    """The same document with a path for each value of a file: a trace is long, and in every point."""
    if isinstance(record, Mapping):
        return {key: _by_name(value, names) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [_by_name(value, names) for value in record]
    return names.get(record, record) if isinstance(record, str) else record
