# SPDX-License-Identifier: Apache-2.0
"""Replays a point of a finished run as a run of its own, and compares the two."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from testctl_agent.spec.errors import PlanError

from testctl.core.testbed_kind import DEFAULT, kind_of
from testctl.execution.finish import complete
from testctl.execution.options import Options
from testctl.execution.point import keep, measure
from testctl.lab.built import by_key
from testctl.lab.machine import BOOT_NS, KERNEL_LOG, TRACE, t0_ns
from testctl.plan import Plan, Point
from testctl.plan.subset import subset
from testctl.replay.identity import Identity, identity
from testctl.replay.instruments import InstrumentedLab, Instruments
from testctl.replay.variants import relative_to, with_tracepoints
from testctl.results import Run, RunPoint, RunWriter, layout, load_point
from testctl.results.provenance import plan_of, point_of
from testctl.results.versions import collect_versions
from testctl.results.work import WORK, begin_work
from testctl.system.say import say
from testctl.testbeds.code_key import CodeKey
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.point_spec import kernels_of, spec_of


@dataclass(frozen=True)
class Replay:
    """The result of a replay.

    unlike    differences of kernel and code from those of the run
    identity  None if either has no records to compare
    """

    run: Run
    point: RunPoint
    unlike: tuple[str, ...]
    identity: Identity | None
    files: tuple[Path, ...]


def replay(
    run: Run, start: str, instruments: Instruments, out: Path | None, results: Path, commands: bool = False
) -> Replay:
    """Run a point of a finished run again and compare it; the new run lies in `out`, or below `results`.

    commands: whether the command lines of the run's plan may be run, if it has any

    Raises PlanError for a point that can't be replayed, TestbedError when its kernel is not built.
    """
    recorded = run.point(start)
    bed = str(run.summary.get("testbed", DEFAULT))
    if not kind_of(bed).deterministic:
        raise PlanError(f"{run.path}: ran on {bed}; only in the lab, in virtual time, is a point the same again")
    plan = plan_of(run)
    point = point_of(run, plan, recorded.id)
    lab = lab_for(recorded, point, commands)
    if instruments.trace:
        lab = replace(lab, kernels={name: with_tracepoints(kernel) for name, kernel in lab.kernels.items()})
    unlike = differences(run, recorded, lab.code_key(point))
    name = f"{run.summary.get('plan', 'plan')}-{point.id}"
    writer = RunWriter.create_at(out) if out else RunWriter.create(results, name)
    try:
        done, files = _written(run, plan, point, InstrumentedLab.of(lab, instruments), writer)
    except BaseException:
        shutil.rmtree(writer.path, ignore_errors=True)
        raise
    after = load_point(layout.point_dir(done.path, point.id))
    before, again = recorded.records(), after.records()
    proof = None
    if before is not None and again is not None:
        proof = identity(before, recorded.digest, again)
    return Replay(done, after, unlike, proof, tuple(done.path / file for file in files))


def lab_for(recorded: RunPoint, point: Point, commands: bool) -> LabTestbed:
    """The lab with the kernels of the run's point; a different build of that name is reported.

    Raises as LabTestbed.for_points.
    """
    names, keys = kernels_of(point), CodeKey.parse(recorded.verdict_file.code_key).kernel.split(",")
    of_run = dict(zip_longest(names, keys[: len(names)], fillvalue=""))
    kernels = {name: kernel for name, key in of_run.items() if (kernel := by_key(name, key))}
    lab = LabTestbed.for_points([point], commands=commands, kernels=kernels)
    for name in [name for name in names if name not in kernels]:
        say(
            f"the kernel of the run, {name}-{of_run[name] or '?'}, is not in the cache any more: point {recorded.id} "
            f"runs on {lab.kernels[name].directory.name}, and may differ"
        )
    return lab


def differences(run: Run, recorded: RunPoint, key: str) -> tuple[str, ...]:
    """Differences from the run in kernel and code, which determine the records."""
    changes = CodeKey.parse(recorded.verdict_file.code_key).differences(CodeKey.parse(key))
    if changes:
        here, there = collect_versions(), run.versions
        changes += [
            f"{name} {there.get(name)} then, {here.get(name)} now"
            for name in ("commit", "testctl", "testctl_agent", "python")
            if there.get(name) != here.get(name)
        ]
    return tuple(changes)


def _written(run: Run, plan: Plan, point: Point, bed: InstrumentedLab, writer: RunWriter) -> tuple[Run, list[Path]]:
    """Measure the point and complete a run of it alone; the files that the instruments wrote, in the run."""
    started, clock = datetime.now(UTC), time.monotonic()
    plan = subset(replace(plan, name=str(run.summary.get("plan", "plan"))), [point.id])
    begin_work(writer.path)
    writer.write_plan(run.plan_text, {"points": [point.to_json()]}, run.topology_text, run.traces)
    work = writer.path / WORK / point.id
    result = measure(bed, point, work, keep_captures=True)
    raw = work / "raw"
    if (raw / TRACE).exists():
        relative_to(raw / TRACE, t0_ns(spec_of(point)) - BOOT_NS)
    more = {name: raw / name for name in (KERNEL_LOG, TRACE) if (raw / name).exists()}
    keep(writer.path, point, replace(result, more=more))
    done = complete(plan, writer, Options(writer.final.parent), started, time.monotonic() - clock)
    home = layout.point_dir(done.path, point.id)
    there = [
        *sorted((home / layout.CAPTURES).glob("*.pcap")),
        home / layout.TCP_EVENTS,
        home / KERNEL_LOG,
        home / TRACE,
    ]
    return done, [path.relative_to(done.path) for path in there if path.exists()]
