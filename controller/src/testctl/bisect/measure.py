# SPDX-License-Identifier: Apache-2.0
"""What a plan's points are on a commit's kernel: built or found in the cache, run in the lab, kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestbedError
from testctl_agent.system import durable

from testctl.bisect import compiled
from testctl.execution.point import keep, measure
from testctl.lab import git_tree
from testctl.lab import kernel as kernels
from testctl.lab.inputs import Inputs
from testctl.lab.kernel import BuildError, Kernel
from testctl.lab.make import Progress
from testctl.lab.source import find
from testctl.plan import Plan, evaluate
from testctl.results import RunPoint, layout, load_point
from testctl.testbeds.lab import LabTestbed

COMMITS, MEASURED, WORK = "commits", "measured.json", ".work"
"""Below the directory of a bisection: a directory for each commit, its file, and where points are run."""


@dataclass(frozen=True)
class Measurement:
    """A commit in the lab.

    kernel        the directory of its kernel in the cache
    same_as       the commit whose kernel it has too; "" if its own was built and run
    verdict       of the plan: fail, or pass, or the worst other verdict of a point
    expectations  name → verdict
    metrics       point → flow → metric → value
    digest        over the digests of the points
    untestable    why it can't be judged: it does not build, or a point is broken; "" if it can
    """

    commit: str
    kernel: str = ""
    same_as: str = ""
    verdict: str = ""
    reason: str = ""
    expectations: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    digest: str = ""
    untestable: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Measurement:
        return cls(**{name: raw[name] for name in cls.__dataclass_fields__ if name in raw})


@dataclass
class Bench:
    """Measures commits of a tree; each once.

    tree   the user's kernel tree; name: of its kernels, as in the plan's `kernel` tuple
    key    of what determines a measurement beside the commit: one that is kept under another key is not used
    """

    tree: Path
    name: str
    plan: Plan
    directory: Path
    key: str
    progress: Progress
    jobs: int
    runs: int = 0
    builds: int = 0
    known: dict[str, Measurement] = field(default_factory=dict)
    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    """By the commits whose kernels were built: what each was built from."""

    def measured(self, commit: str) -> Measurement:
        """What a commit is, from an earlier call, an earlier bisection of this directory, or from the lab."""
        if commit not in self.known:
            self.known[commit] = self._kept(commit) or self._same(commit) or self._fresh(commit)
            measurement = self.known[commit]
            place = self.directory / COMMITS / measurement.commit
            place.mkdir(parents=True, exist_ok=True)
            text = json.dumps(asdict(measurement) | {"key": self.key}, indent=1)
            durable.write(place / MEASURED, text.encode())
        return self.known[commit]

    def again(self, commit: str) -> Measurement:
        """A second measurement of a commit whose kernel is built; it is not kept."""
        kernel = Kernel(self.name, "", Path(self.measured(commit).kernel))
        where = self.directory / WORK / "again"
        shutil.rmtree(where, ignore_errors=True)
        try:
            return self._run(commit, kernel, where)
        finally:
            shutil.rmtree(where, ignore_errors=True)

    def points(self, commit: str) -> dict[str, RunPoint]:
        """The points of a commit with their records, by id."""
        place = self.directory / COMMITS / (self.measured(commit).same_as or commit)
        return {point.id: load_point(layout.point_dir(place, point.id)) for point in self.plan.points}

    def _kept(self, commit: str) -> Measurement | None:
        file = self.directory / COMMITS / commit / MEASURED
        try:
            raw = json.loads(file.read_text(encoding="utf-8"))
            if raw.get("key") != self.key:
                return None
            measurement = Measurement.from_json(raw)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        if measurement.kernel and not measurement.same_as and not Path(measurement.kernel).is_dir():
            return None
        self._remember(commit, measurement)
        return measurement

    def _remember(self, commit: str, measurement: Measurement) -> None:
        sources = compiled.read(Kernel(self.name, "", Path(measurement.kernel))) if measurement.kernel else None
        if sources and not measurement.same_as and not measurement.untestable:
            self.sources[commit] = sources

    def _same(self, commit: str) -> Measurement | None:
        """A measurement of a commit that differs in no file that is compiled."""
        for other, sources in self.sources.items():
            if not compiled.relevant(git_tree.changed(self.tree, other, commit), sources):
                return Measurement(**{**asdict(self.known[other]), "commit": commit, "same_as": other})
        return None

    def _fresh(self, commit: str) -> Measurement:
        try:
            source = find(self.name, self.tree, commit)
            kernel = kernels.locate(self.name, Inputs.of(source))
            if not kernel.built:
                kernel = kernels.build(source, self.progress, self.jobs)
                self.builds += 1
                compiled.keep(kernel, source)
        except BuildError as error:
            return Measurement(commit, untestable=str(error).partition("\n")[0])
        where = self.directory / COMMITS / commit
        shutil.rmtree(where, ignore_errors=True)
        measurement = self._run(commit, kernel, where)
        self._remember(commit, measurement)
        return measurement

    def _run(self, commit: str, kernel: Kernel, where: Path) -> Measurement:
        """Run every point on a kernel, below a directory that is made."""
        (where / layout.POINTS).mkdir(parents=True)
        bed = LabTestbed.for_points(self.plan.points, commands=True, kernels={self.name: kernel})
        points: dict[str, RunPoint] = {}
        for point in self.plan.points:
            self.runs += 1
            work = where / WORK / point.id
            keep(where, point, measure(bed, point, work, keep_captures=False))
            points[point.id] = load_point(layout.point_dir(where, point.id), point)
        shutil.rmtree(where / WORK, ignore_errors=True)
        verdicts, expectations = evaluate(self.plan, {name: point.measured for name, point in points.items()})
        odd = [verdict for verdict in verdicts if verdict.verdict not in ("pass", "fail")]
        failed = [verdict for verdict in verdicts if verdict.verdict == "fail"]
        failed_whole = [expectation for expectation in expectations if expectation.verdict == "fail"]
        first = next(iter([*odd, *failed]), None)
        verdict = odd[0].verdict if odd else "fail" if failed or failed_whole else "pass"
        digests = "".join(f"{name} {point.digest}\n" for name, point in sorted(points.items()))
        return Measurement(
            commit=commit,
            kernel=str(kernel.directory),
            verdict=verdict,
            reason=first.reason if first else failed_whole[0].detail if failed_whole else "",
            expectations={expectation.name: expectation.verdict for expectation in expectations},
            metrics={name: {flow: dict(values) for flow, values in point.metrics.items()}
                     for name, point in points.items()},
            digest=hashlib.sha256(digests.encode()).hexdigest(),
            untestable=f"{odd[0].verdict}: {odd[0].reason}" if odd and odd[0].verdict == "broken" else "",
        )  # fmt: skip


def need_lab(measurement: Measurement) -> Measurement:
    """A measurement of an end of the bisection, which has to be one.  Raises TestbedError."""
    if measurement.untestable:
        raise TestbedError(
            f"commit {measurement.commit[:12]}: want an end that can be judged: {measurement.untestable}"
        )
    return measurement
