# SPDX-License-Identifier: Apache-2.0
"""Writes one point of a run, whole or not at all, and finds finished points to use again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from testctl_agent.spec.errors import TestbedError

from testctl.records import Records
from testctl.results import layout
from testctl.results.atomic import put_file, told, write_json, write_text

REUSED = frozenset({"pass", "fail"})
"""Verdicts of points that are finished; the others are run again on `--resume`."""


@dataclass(frozen=True)
class PointResult:
    """All that is kept of a point.

    point       what was asked (point.json); must have "id"
    outcome     what the testbed says happened (outcome.json); its "entities" hold the states
    metrics     {"<flow>" or "*": {metric: number or text}}
    records     None where there are none (broken, skip); the digest of the point is theirs
    stalls      table of testctl.metrics.stalls, or None
    fates       findings of testctl.fates as JSON: what became of every fate asked for
    captures    pcap file of each host; linked or copied into the point
    traceback   of the exception that a point ended in, if that was a bug
    code_key    what, besides the point, determines the records: kernel, agents, tgen
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
    captures: Mapping[str, Path] = field(default_factory=dict)
    traceback: str = ""


def write_point(run: Path, result: PointResult) -> Path:
    """Write a point's directory under a temporary name and rename it; returns it.

    Safe to call from several processes for different points.  Raises TestbedError that says which
    point was lost; the run's other points stay.
    """
    point_id = str(result.point["id"])
    _check_verdict(point_id, result.verdict)
    final = layout.point_dir(run, point_id)
    if final.exists():
        raise TestbedError(f"{final}: the point exists already; points are never overwritten")
    temporary = final.with_name(f".{point_id}.{os.getpid()}.tmp")
    with told(final, f"point {point_id} was lost, finished points are kept (`--resume` uses them)"):
        try:
            temporary.mkdir()
            _fill(temporary, result)
            os.rename(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return final


def set_verdict(run: Path, point_id: str, verdict: str, reason: str = "", **more: Any) -> None:
    """Replace the verdict of a point of a run in progress, as judged against the plan's `expect`."""
    _check_verdict(point_id, verdict)
    if not run.name.endswith(layout.IN_PROGRESS):
        raise TestbedError(f"{run}: the run is complete; results are never changed afterwards")
    path = layout.point_dir(run, point_id) / layout.VERDICT
    with told(path, f"the verdict of point {point_id} was lost"):
        write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "verdict": verdict, "reason": reason, **more})


def find_finished(results_dir: Path, point_id: str, code_key: str, runs: str = "*") -> Path | None:
    """The newest finished point with this id and code key, in a run in progress or complete; None if there is none.

    runs: a pattern of the runs' names.

    A directory that can't be read is passed over: the point is then simply run.
    """
    newest: tuple[str, Path] | None = None
    for verdict in results_dir.glob(
        f"{runs}/{layout.POINTS}/{layout.safe_name(point_id, 'point id')}/{layout.VERDICT}"
    ):
        run = verdict.parents[2]
        if run.is_symlink() or (newest and run.name <= newest[0]):
            continue
        try:
            said = json.loads(verdict.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(said, dict) and said.get("code_key") == code_key and said.get("verdict") in REUSED:
            newest = (run.name, verdict.parent)
    return newest[1] if newest else None


def reuse_point(run: Path, finished: Path) -> Path:
    """Take a finished point of another run into this one (hard links where possible); returns its directory."""
    final = layout.point_dir(run, finished.name)
    if final.exists():
        raise TestbedError(f"{final}: the point exists already; points are never overwritten")
    temporary = final.with_name(f".{finished.name}.{os.getpid()}.tmp")
    with told(final, f"point {finished.name} of {finished.parents[1].name} was not taken over"):
        try:
            shutil.copytree(finished, temporary, copy_function=lambda a, b: put_file(Path(a), Path(b)))
            said = json.loads((temporary / layout.VERDICT).read_text(encoding="utf-8"))
            origin = said.get("reused_from") or finished.parents[1].name.removesuffix(layout.IN_PROGRESS)
            write_json(temporary / layout.VERDICT, {**said, "reused_from": origin})
            os.rename(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return final


def _check_verdict(point_id: str, verdict: str) -> None:
    if verdict not in layout.VERDICTS:
        raise TestbedError(f"point {point_id}: want a verdict of {', '.join(layout.VERDICTS)}; got {verdict!r}")


def _fill(directory: Path, result: PointResult) -> None:
    entities = result.outcome.get("entities", {})
    write_json(directory / layout.POINT, result.point)
    write_json(directory / layout.OUTCOME, result.outcome)
    for name, when in ((layout.STATE_BEFORE, "before"), (layout.STATE_AFTER, "after")):
        write_json(directory / name, {entity: state.get(when, {}) for entity, state in entities.items()})
    write_json(directory / layout.METRICS, result.metrics)
    if result.records is not None:
        result.records.save(directory)
    if result.stalls is not None:
        pq.write_table(result.stalls, directory / layout.STALLS, compression="zstd")
    if result.fates:
        write_json(directory / layout.FATES, {"fates": [dict(found) for found in result.fates]})
    if result.traceback:
        write_text(directory / layout.TRACEBACK, result.traceback.encode(errors="replace").decode())
    if result.captures:
        (directory / layout.CAPTURES).mkdir()
        for host, source in result.captures.items():
            put_file(source, directory / layout.CAPTURES / layout.capture_name(layout.safe_name(host, "host")))
    verdict = {
        "id": result.point["id"],
        "verdict": result.verdict,
        "reason": result.reason,
        "digest": result.records.digest() if result.records is not None else "",
        "code_key": result.code_key,
        "wall_s": result.wall_s,
        "virtual_s": result.virtual_s,
    }
    write_json(directory / layout.VERDICT, verdict)
