# SPDX-License-Identifier: Apache-2.0
"""Reads a run: points and metrics at once, records on demand, SQL over all of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from testctl_agent.spec import untrusted
from testctl_agent.spec.errors import PlanError
from testctl_agent.spec.untrusted import Named, Shape, misfit

from testctl.core.outcome import SHAPE as OUTCOME
from testctl.core.point import POINT
from testctl.core.temporal import Answers
from testctl.plan import Measured, Point
from testctl.records import Records
from testctl.records.files import json_text
from testctl.records.parquet import cleaned, read_parquet
from testctl.results import layout, shapes
from testctl.results.verdict_file import FORMAT, VerdictFile
from testctl.system.text import first_of


@dataclass(frozen=True)
class RunPoint:
    """One point of a run on disk.

    tuples   [(entity, parameter, value)] as in the plan's point
    metrics  {"<flow>" or "*": {metric: number, text or None (NaN)}}
    verdict_file  verdict.json, whose judgement is this point's
    repeat   which repetition of the plan it is, from 0
    """

    path: Path
    id: str
    tuples: tuple[tuple[str, str, Any], ...]
    verdict: str
    reason: str
    digest: str
    wall_s: float
    virtual_s: float
    metrics: Mapping[str, Mapping[str, float | str | None]]
    verdict_file: VerdictFile
    repeat: int = 0

    @cached_property
    def point(self) -> Mapping[str, Any]:
        """The specification, point.json."""
        return read_json(self.path / layout.POINT, POINT)

    @cached_property
    def outcome(self) -> Mapping[str, Any]:
        """The testbed's report, outcome.json."""
        return read_json(self.path / layout.OUTCOME, OUTCOME)

    @cached_property
    def fates(self) -> Sequence[Mapping[str, Any]]:
        """The outcome of every requested fate (testctl.packet_actions.RuleFinding), by switch, flow and connection."""
        return self._listed(layout.FATES, shapes.FATES)

    @cached_property
    def violations(self) -> Sequence[Mapping[str, Any]]:
        """What the rules of TCP say (testctl.rules.judge.violations_of), by flow, end and rule."""
        return self._listed(layout.VIOLATIONS, shapes.VIOLATIONS)

    def _listed(self, name: str, shape: Shape) -> Sequence[Mapping[str, Any]]:
        path = self.path / name
        listed: Sequence[Mapping[str, Any]] = read_json(path, shape)[path.stem] if path.exists() else []
        return listed

    @cached_property
    def answers(self) -> Answers:
        """What came of the plan's conditions over the trace, by condition and flow."""
        path = self.path / layout.ANSWERS
        return read_json(path, shapes.ANSWERS) if path.exists() else {}

    @cached_property
    def programs(self) -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]:
        """What the switches' P4 programs of the user's held at the end, by switch: "registers", name, cell, value;
        "counters", name, cell, [packets, bytes]; cells of 0 are left out."""
        path = self.path / layout.RECORDS
        counters = read_json(path, shapes.RECORDS)["counters"] if path.exists() else {}
        return {name: held["program"] for name, held in counters.items() if "program" in held}

    @property
    def measured(self) -> Measured:
        """The measurement that expectations are evaluated on."""
        judgement = self.verdict_file.measured
        return Measured(judgement.verdict, judgement.reason, self.metrics, self.answers)

    @property
    def kernel(self) -> str:
        """The release of the kernel that ran; "" where none did."""
        known = self.verdict_file.kernel
        return str(read_json(self.path / layout.OUTCOME).get("kernel") or "") if known is None else known

    def state(self, when: str) -> Mapping[str, Any]:
        """{entity: {parameter: value}}; `when` is "before" or "after"."""
        return {entity: entries.get(when, {}) for entity, entries in self.outcome.get("entities", {}).items()}

    @property
    def has_records(self) -> bool:
        return (self.path / layout.PACKETS).exists()

    def records(self) -> Records | None:
        """All that metrics read, loaded now; None if the point has none.  Raises RecordsError."""
        return Records.load(self.path) if self.has_records else None

    def packets(self, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The packets' records, read now; None if the point has none."""
        return _table(self.path / layout.PACKETS, columns)

    def tcp_info(self, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The samples of tcp_info, read now; None if the point has none."""
        return _table(self.path / layout.TCP_INFO, columns)

    def tcp_events(self, columns: Sequence[str] | None = None) -> pa.Table | None:
        """TCP events traced by kernels, read now; None if the point has none."""
        return _table(self.path / layout.TCP_EVENTS, columns)

    def requests(self, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The records of requests, read now; None if the point has none."""
        return _table(self.path / layout.REQUESTS, columns)

    def stalls(self, columns: Sequence[str] | None = None) -> pa.Table | None:
        """The stalls, read now; None if the point has none."""
        return _table(self.path / layout.STALLS, columns)

    def captures(self) -> dict[str, Path]:
        return {path.stem: path for path in sorted((self.path / layout.CAPTURES).glob("*.pcap"))}

    def summary(self) -> dict[str, Any]:
        """The point's entry of summary.json."""
        entry = {
            "id": self.id,
            "tuples": [list(item) for item in self.tuples],
            "verdict": self.verdict,
            "reason": self.reason,
            "digest": self.digest,
            "wall_s": self.wall_s,
            "virtual_s": self.virtual_s,
            "metrics": {flow: dict(values) for flow, values in self.metrics.items()},
        }
        return entry | ({"reused_from": self.verdict_file.reused_from} if self.verdict_file.reused_from else {})


@dataclass(frozen=True)
class Run:
    """A run on disk; `summary` is {} while it is in progress."""

    path: Path
    summary: Mapping[str, Any]
    points: tuple[RunPoint, ...]

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(layout.IN_PROGRESS)

    @property
    def complete(self) -> bool:
        return not self.path.name.endswith(layout.IN_PROGRESS)

    @cached_property
    def plan_text(self) -> str:
        """The plan as given ("" if it was not kept)."""
        return self._text(layout.PLAN)

    @cached_property
    def topology_text(self) -> str:
        """The topology that the plan names by its path ("" where it names none)."""
        return self._text(layout.TOPOLOGY)

    def _text(self, name: str) -> str:
        path = self.path / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @cached_property
    def traces(self) -> Mapping[str, str]:
        """The traces that the plan names by their paths: path -> value."""
        path = self.path / layout.TRACES
        return read_json(path, Named(str)) if path.exists() else {}

    @cached_property
    def versions(self) -> Mapping[str, Any]:
        path = self.path / layout.VERSIONS
        return read_json(path) if path.exists() else {}

    @property
    def digest(self) -> str:
        """The run's digest, of summary.json or of the points so far."""
        data = self.summary.get("digest")
        return str(data) if data else layout.run_digest((point.id, point.digest) for point in self.points)

    def point(self, start: str) -> RunPoint:
        """The point whose id starts so.  Raises PlanError: none, or more than one."""
        matching = [point for point in self.points if point.id.startswith(start)]
        if len(matching) != 1:
            got = first_of([point.id for point in matching], 5) or "none"
            raise PlanError(f"{self.path}: want the id of one point; {start!r} names {got}")
        return matching[0]


def load_run(path: Path, damage: list[str] | None = None) -> Run:
    """Open a run's directory (complete, in progress, or a link such as results/latest).

    damage: if given, points that can't be read are left out, and their faults are added to it

    Raises PlanError when there is no run or it can't be read.
    """
    path = path.resolve()
    if not (path / layout.POINTS).is_dir():
        raise PlanError(f"{path}: want the directory of a run (with {layout.POINTS}/); there is none")
    for name in (layout.SUMMARY, layout.PLAN, layout.TOPOLOGY, layout.TRACES, layout.VERSIONS):
        if (path / name).is_symlink() or ((path / name).exists() and not (path / name).is_file()):
            raise PlanError(f"{path / name}: want a file; got a link or something else")
    summary_path = path / layout.SUMMARY
    summary = read_json(summary_path, shapes.SUMMARY) if summary_path.exists() else {}
    place = {entry["id"]: index for index, entry in enumerate(summary.get("points", []))}
    points = sorted(load_points(path, damage), key=lambda point: (place.get(point.id, len(place)), point.id))
    return Run(path, summary, tuple(points))


def load_points(run: Path, damage: list[str] | None = None) -> Iterator[RunPoint]:
    """Every finished point of a run, sorted by id; damage: as of load_run."""
    for path in sorted((run / layout.POINTS).iterdir()):
        if not path.name.startswith("."):
            check_plain(path)
            try:
                yield load_point(path)
            except PlanError as error:
                if damage is None:
                    raise
                damage.append(str(error))


def load_point(path: Path, expected: Point | None = None) -> RunPoint:
    """Open the directory of a point.  Raises PlanError if it can't be read or contradicts its id.

    expected: the point of the current plan, which saves reading it
    """
    data = read_json(path / layout.VERDICT)
    if data.get("format") != FORMAT:
        raise PlanError(
            f"{path / layout.VERDICT}: format: want {FORMAT}; got {data.get('format')!r:.40}: another version of "
            "testctl wrote it"
        )
    if why := misfit(data, shapes.VERDICT):
        raise PlanError(f"{path / layout.VERDICT}: {why}")
    point = read_json(path / layout.POINT, shapes.POINT) if expected is None else vars(expected)
    if data["id"] != path.name or data["verdict"] not in layout.VERDICTS:
        raise PlanError(f"{path}: want the verdict of point {path.name}; got {data['verdict']!r} of {data['id']!r}")
    try:
        file = VerdictFile.from_json(data)
        return RunPoint(
            path=path,
            id=file.id,
            tuples=tuple((str(e), str(p), v) for e, p, v in point.get("tuples", [])),
            verdict=file.judged.verdict,
            reason=file.judged.reason,
            digest=file.digest,
            wall_s=file.wall_s,
            virtual_s=file.virtual_s,
            metrics=_shared(read_json(path / layout.METRICS, shapes.VALUES)),
            verdict_file=file,
            repeat=point.get("repeat", 0),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PlanError(f"{path}: want a point as testctl writes it; got {error!r}") from error


def _shared(metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same metrics with interned names: of ten thousand points names would take most of the memory."""
    return {sys.intern(flow): {sys.intern(name): v for name, v in given.items()} for flow, given in metrics.items()}


def check_plain(directory: Path) -> None:
    """Raises PlanError unless all entries are files and directories: a link could lead out of the run."""
    if directory.is_symlink() or not directory.is_dir():
        raise PlanError(f"{directory}: want a directory; got a link or something else")
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    check_plain(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise PlanError(f"{entry.path}: want a file or a directory; got a link or a device")
    except OSError as error:
        raise PlanError(f"{directory}: can't be listed: {error.strerror}") from error


def read_json(path: Path, shape: Shape = object) -> dict[str, Any]:
    """An object of a JSON file.  Raises PlanError with the file's name."""
    try:
        value = untrusted.loads(json_text(path))
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: can't read it: {error}") from error
    if not isinstance(value, dict):
        raise PlanError(f"{path}: want a JSON object; got {type(value).__name__}")
    if why := misfit(value, shape):
        raise PlanError(f"{path}: {why}")
    return value


def _table(path: Path, columns: Sequence[str] | None) -> pa.Table | None:
    if not path.exists():
        return None
    try:
        return cleaned(read_parquet(path, columns))
    except (OSError, pa.ArrowException) as error:
        raise PlanError(f"{path}: can't read the records: {error}") from error
