# SPDX-License-Identifier: Apache-2.0
"""Reuses finished points of earlier runs, after checking their integrity."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from testctl_agent.spec.errors import PlanError, TestctlError

from testctl.core.temporal import Temporal
from testctl.records import Records
from testctl.results import layout, shapes
from testctl.results.atomic import put_file, write_json
from testctl.results.manifest import difference, manifest_of
from testctl.results.point import Assessed, publishing, write_analysis
from testctl.results.reader import read_json
from testctl.results.verdict_file import FORMAT, VerdictFile


class UnusableError(TestctlError):
    """Why a point of an earlier run is run again."""


@dataclass(frozen=True)
class Kept:
    """A point of an earlier run, complete or not; `verdict_file` is its verdict.json, None if unreadable."""

    path: Path
    verdict_file: VerdictFile | None

    @property
    def run(self) -> str:
        return self.path.parents[1].name.removesuffix(layout.IN_PROGRESS)


def kept_points(results_dir: Path, point_id: str, runs: str = "*") -> list[Kept]:
    """The points with this id of all runs, the newest run first.

    runs: a pattern of the runs' names
    """
    pattern = f"{runs}/{layout.POINTS}/{layout.safe_name(point_id, 'point id')}"
    places = [path for path in results_dir.glob(pattern) if not path.parents[1].is_symlink()]
    places.sort(key=lambda path: path.parents[1].name, reverse=True)
    return [Kept(path, _file(path / layout.VERDICT)) for path in places]


def unusable(kept: Kept, code_key: str, records: str) -> str:
    """Why a point can't be reused according to its verdict.json; "" if it can.

    code_key, records: of the current code, as in PointResult
    """
    file = kept.verdict_file
    if file is None:
        return f"{layout.VERDICT} can't be read"
    if file.format != FORMAT:
        return "another version of testctl wrote it, in another format"
    if file.measured.verdict != "pass":
        return f"it was {file.measured.verdict}"
    if file.code_key != code_key:
        return "other code made it: kernel, agents, tgen, switch program or lab"
    if file.analysis.get("records") != records:
        return "other code read its captures"
    return ""


def as_measured(path: Path, code_key: str, analysis: Mapping[str, str], conditions: Sequence[Temporal] = ()) -> bool:
    """Whether the directory of a point can be reused without computing it again.

    code_key, analysis: of the current code, as in PointResult; conditions: as in take()
    """
    kept = Kept(path, _file(path / layout.VERDICT))
    if (
        kept.verdict_file is None
        or unusable(kept, code_key, analysis["records"])
        or kept.verdict_file.analysis != analysis
        or not _answered(path, conditions)
    ):
        return False
    return not difference(path, kept.verdict_file.files)


def take(
    run: Path,
    kept: Kept,
    analysis: Mapping[str, str],
    again: Callable[[Records], Assessed],
    conditions: Sequence[Temporal] = (),
) -> bool:
    """Copy a point into a run (hard links where possible), with the verdict of its measurement.

    analysis    of the current code; if its "metrics" differ from those of the point, `again` computes
                metrics, stalls, fates, violations and answers from the point's records
    conditions  over the trace, of the plan; `again` is called too where the point does not answer one of them
    Returns whether it computed them.  Raises UnusableError, leaving nothing, if the point was altered;
    TestbedError when it can't be written here.
    """
    if kept.verdict_file is None:
        raise UnusableError(f"{layout.VERDICT} can't be read")
    final = layout.point_dir(run, kept.path.name)
    with publishing(final, f"point {final.name} of {kept.run} was not taken over") as temporary:
        shutil.copytree(kept.path, temporary, symlinks=True, copy_function=lambda a, b: put_file(Path(a), Path(b)))
        records = _checked(temporary, kept.verdict_file)
        computed = kept.verdict_file.analysis != analysis or not _answered(temporary, conditions)
        if computed:
            if records is None:
                raise UnusableError("its metrics have to be computed again, and it has no records to compute them from")
            measured = again(records)
            if measured.verdict != "pass":
                raise UnusableError(f"computed from its records again it is {measured.verdict}: {measured.reason}")
            write_analysis(temporary, measured)
        file = replace(
            kept.verdict_file,
            judged=kept.verdict_file.measured,
            analysis=analysis,
            files=manifest_of(temporary) if computed else kept.verdict_file.files,
            reused_from=kept.verdict_file.reused_from or kept.run,
        )
        write_json(temporary / layout.VERDICT, file.to_json())
    return computed


def _answered(directory: Path, conditions: Sequence[Temporal]) -> bool:
    """Whether a kept point has an answer to each of these conditions."""
    try:
        answers = read_json(directory / layout.ANSWERS, shapes.ANSWERS) if conditions else {}
    except PlanError:
        return False
    return all(condition.key in answers for condition in conditions)


def _checked(directory: Path, file: VerdictFile) -> Records | None:
    """The point's records, None if it has none.  Raises UnusableError if it was altered."""
    try:
        if why := difference(directory, file.files):
            raise UnusableError(why)
        if not (directory / layout.PACKETS).exists():
            digest, records = "", None
        else:
            records = Records.load(directory)
            digest = records.digest()
    except (OSError, ValueError, KeyError, TypeError, RecursionError, pa.ArrowException) as error:
        raise UnusableError(f"it can't be read: {error}") from error
    if digest != file.digest:
        raise UnusableError(
            f"{layout.PACKETS}: want packets of the digest {file.digest[:16]}…; got {digest[:16] or 'none'}…"
        )
    return records


def _file(path: Path) -> VerdictFile | None:
    try:
        return VerdictFile.from_json(read_json(path, shapes.VERDICT))
    except (PlanError, ValueError):
        return None
