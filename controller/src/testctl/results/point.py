# SPDX-License-Identifier: Apache-2.0
"""Writes a point of a run atomically, and its verdict."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import durable

from testctl.core.temporal import Answers
from testctl.plan import Judgement, Measured
from testctl.records import Records
from testctl.results import layout
from testctl.results.atomic import as_json, naming_path, plain, put_file, write_json
from testctl.results.manifest import manifest_of
from testctl.results.reader import RunPoint
from testctl.results.verdict_file import VerdictFile


@dataclass(frozen=True)
class PointResult:
    """The data of a point to write.

    point       the specification (point.json); must have "id"
    outcome     the testbed's report (outcome.json); its "entities" hold the states
    metrics     {"<flow>" or "*": {metric: number or text}}
    records     None where there are none (broken, skip); the digest of the point is theirs
    stalls      table of testctl.metrics.stalls, or None
    fates       findings of testctl.packet_actions as JSON: the outcome of every requested fate
    violations  what the rules of TCP say (testctl.rules.judge) as JSON, of ends with a violation
    answers     what came of the plan's conditions over the trace
    captures    pcap file of each host, if they are kept; linked or copied into the point
    traceback   of the exception that a point ended in, if that was a bug
    more        other files by the name they get in the point; likewise
    code_key    hash of everything besides the point that determines the raw files: kernel, agents, tgen
    analysis    hashes of the code that made the rest of them: {"records": …, "metrics": …}
    """

    point: Mapping[str, Any]
    verdict: str
    reason: str = ""
    code_key: str = ""
    wall_s: float = 0.0
    virtual_s: float = 0.0
    outcome: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, float | str | None]] = field(default_factory=dict)
    records: Records | None = None
    stalls: pa.Table | None = None
    fates: Sequence[Mapping[str, Any]] = ()
    violations: Sequence[Mapping[str, Any]] = ()
    answers: Answers = field(default_factory=dict)
    captures: Mapping[str, Path] = field(default_factory=dict)
    traceback: str = ""
    more: Mapping[str, Path] = field(default_factory=dict)
    analysis: Mapping[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> Measured:
        """The measurement as written: NaN and infinity are null."""
        return Measured(Judgement.from_json(vars(self)).verdict, self.reason, plain(self.metrics), self.answers)


class Assessed(Protocol):
    """The results computed from records, with the verdict of the measurement (testctl.execution.assess.Assessment)."""

    @property
    def verdict(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def metrics(self) -> Mapping[str, Mapping[str, float | str | None]]: ...

    @property
    def stalls(self) -> pa.Table | None: ...

    @property
    def fates(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def violations(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def answers(self) -> Answers: ...


def write_point(run: Path, result: PointResult) -> Path:
    """Write a point's directory under a temporary name and rename it; returns it.

    Safe to call from several processes for different points.  Raises TestbedError that says which
    point was lost; the run's other points stay.
    """
    point_id = str(result.point["id"])
    _check_verdict(point_id, result.verdict)
    final = layout.point_dir(run, point_id)
    lost = f"point {point_id} was lost, finished points are kept (`--resume` uses them)"
    with publishing(final, lost) as temporary:
        temporary.mkdir()
        _fill(temporary, result)
    return final


@contextmanager
def publishing(final: Path, lost: str) -> Iterator[Path]:
    """The path of a temporary directory, which becomes a point's at the end; after an error it is removed.

    lost: what an error of writing it says.  Raises TestbedError.
    """
    if final.exists():
        raise TestbedError(f"{final}: the point exists already; points are never overwritten")
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    with naming_path(final, lost):
        try:
            yield temporary
            durable.publish(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def set_verdict(point: RunPoint, verdict: str, reason: str = "") -> RunPoint:
    """Set the verdict by the plan's `expect` of a point of a run in progress, also in its file.

    The verdict of the measurement is kept, for evaluation by another plan.
    """
    _check_verdict(point.id, verdict)
    run = point.path.parents[1]
    if not run.name.endswith(layout.IN_PROGRESS):
        raise TestbedError(f"{run}: the run is complete; results are never changed afterwards")
    if (verdict, reason) == (point.verdict, point.reason):
        return point
    judged = Judgement.from_json({"verdict": verdict, "reason": reason})
    path, file = point.path / layout.VERDICT, replace(point.verdict_file, judged=judged)
    with naming_path(path, f"the verdict of point {point.id} was lost"):
        write_json(path, file.to_json())
    return replace(point, verdict=verdict, reason=reason, verdict_file=file)


def _check_verdict(point_id: str, verdict: str) -> None:
    if verdict not in layout.VERDICTS:
        raise TestbedError(f"point {point_id}: want a verdict of {', '.join(layout.VERDICTS)}; got {verdict!r}")


def _fill(directory: Path, result: PointResult) -> None:
    _write(directory / layout.POINT, result.point)
    _write(directory / layout.OUTCOME, result.outcome)
    if result.records is not None:
        result.records.save(directory)
    write_analysis(directory, result)
    if result.traceback:
        (directory / layout.TRACEBACK).write_bytes(result.traceback.encode(errors="replace"))
    for name, source in result.more.items():
        put_file(source, directory / layout.safe_name(name, "file"))
    if result.captures:
        (directory / layout.CAPTURES).mkdir()
        for host, source in result.captures.items():
            put_file(source, directory / layout.CAPTURES / f"{layout.safe_name(host, 'host')}.pcap")
    measured = Judgement(result.measured.verdict, result.reason)
    file = VerdictFile(
        id=str(result.point["id"]),
        judged=measured,
        measured=measured,
        digest=result.records.digest() if result.records is not None else "",
        code_key=result.code_key,
        analysis=result.analysis,
        wall_s=result.wall_s,
        virtual_s=result.virtual_s,
        kernel=str(result.outcome.get("kernel") or ""),
        files=manifest_of(directory),
    )
    _write(directory / layout.VERDICT, file.to_json())


def write_analysis(directory: Path, computed: Assessed) -> None:
    """Write the results computed from records into a point that is not published yet.

    Files that are there may have names in other points too: they are removed, never written into.
    """
    for name in (layout.METRICS, layout.STALLS, layout.FATES, layout.VIOLATIONS, layout.ANSWERS):
        (directory / name).unlink(missing_ok=True)
    _write(directory / layout.METRICS, computed.metrics)
    if computed.stalls is not None:
        pq.write_table(computed.stalls, directory / layout.STALLS, compression="zstd")
    for name, entries in ((layout.FATES, computed.fates), (layout.VIOLATIONS, computed.violations)):
        if entries:
            _write(directory / name, {Path(name).stem: [dict(entry) for entry in entries]})
    if computed.answers:
        _write(directory / layout.ANSWERS, computed.answers)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    """Into a directory that is synced as a whole when it is published."""
    path.write_text(as_json(value), encoding="utf-8")
