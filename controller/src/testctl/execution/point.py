# SPDX-License-Identifier: Apache-2.0
"""One point: run on a testbed, analysed, and written into its run."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from testctl_agent.spec.errors import TestctlError
from testctl_agent.spec.untrusted import cleaned, words

from testctl.core.outcome import Outcome
from testctl.core.point import Point, PointSpec
from testctl.report.prepared import prepare
from testctl.results import PointResult, layout, write_point
from testctl.results.work import WORK
from testctl.system.memory import give_back
from testctl.testbeds.ready import NotOurs, ReadyTestbed

MAX_TRACEBACK = 100_000
MANY_PACKETS = 100_000
"""Packets of a point after which its worker returns memory."""
MAX_REASON = 4000
"""Maximum length of a point's reason."""


def run_one(testbed: ReadyTestbed, point: Point, run: Path, keep_captures: bool) -> tuple[str, float]:
    """Run, analyse and write a point, in a worker process; returns (verdict so far, wall seconds)."""
    workdir = run / WORK / point.id
    result = measure(testbed, point, workdir, keep_captures)
    verdict, wall_s = result.verdict, result.wall_s
    large = result.records is not None and result.records.packets.num_rows > MANY_PACKETS
    place = keep(run, point, result)
    del result
    if large:
        give_back()  # before its figures are made, of records that are read again
    prepare(place)
    shutil.rmtree(workdir, ignore_errors=True)
    if large:
        give_back()
    return verdict, wall_s


def measure(
    testbed: ReadyTestbed,
    point: Point,
    workdir: Path,
    keep_captures: bool,
    known: Callable[[Outcome, Path], PointResult | None] = lambda outcome, raw: None,
) -> PointResult:
    """Run and analyse a point, with its raw files in a new directory.

    known: the result, if it follows from the outcome and the raw files without an analysis
    """
    clock = time.monotonic()
    raw = workdir / "raw"
    raw.mkdir(parents=True)
    try:
        spec, outcome = testbed.run(point, raw)
        if (result := known(outcome, raw)) is not None:
            return result
        return _analyse(spec, outcome, workdir, clock, testbed.code_key(point), keep_captures)
    except NotOurs:
        raise
    except TestctlError as error:
        reason = bounded(words(str(error)))
        return PointResult(point=point.to_json(), verdict="broken", reason=reason, wall_s=time.monotonic() - clock)
    except Exception as error:  # noqa: BLE001  one point's oddity must not end the other points of its run
        return _bug(point, error, time.monotonic() - clock)


def keep(run: Path, point: Point, result: PointResult) -> Path:
    """Write the point's directory; errors other than the disk's are recorded as bugs."""
    try:
        return write_point(run, result)
    except TestctlError:
        raise
    except Exception as error:  # noqa: BLE001  as in measure()
        return write_point(run, _bug(point, error, result.wall_s))


def bounded(reason: str) -> str:
    """The reason, truncated: an agent's error may have any length."""
    more = len(reason) - MAX_REASON
    return f"{reason[:MAX_REASON]}… ({more} more characters)" if more > 0 else reason


def _bug(point: Point, error: Exception, wall_s: float) -> PointResult:
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).partition("\n")[0][:200]
    reason = (
        f"a bug, or an agent's odd answer: {type(error).__name__}: {text} ({Path(where.filename).name}:{where.lineno})"
    )
    return PointResult(
        point=point.to_json(),
        verdict="broken",
        reason=words(f"{reason}; {layout.TRACEBACK} beside it has the rest"),
        wall_s=wall_s,
        traceback="".join(traceback.format_exception(error))[-MAX_TRACEBACK:],
    )


def _analyse(
    spec: PointSpec, outcome: Outcome, workdir: Path, clock: float, code_key: str, keep_captures: bool
) -> PointResult:
    """From raw files to records, metrics and a first verdict."""
    from testctl.execution.assess import MAX_DOUBTS, analysis_keys, assess
    from testctl.records import make_records

    kept = cleaned(outcome.to_json())  # it contains texts of agents
    outcome = Outcome.from_json(kept)
    measured = PointResult(point=spec.to_json(), outcome=kept, verdict="pass")
    for verdict, reason in (("skip", outcome.skip), ("broken", outcome.error)):
        if reason:
            text = bounded("; ".join([reason, *outcome.drift[:MAX_DOUBTS], *outcome.kernel_faults]))
            return replace(measured, verdict=verdict, reason=text, wall_s=time.monotonic() - clock)
    records = make_records(spec, outcome, workdir / "raw")
    analysis = assess(records, spec.conditions)
    captures = {path.parents[1].name: path for path in sorted((workdir / "raw").glob("*/capture/capture.pcap"))}
    return replace(
        measured,
        verdict=analysis.verdict,
        reason=bounded(analysis.reason),
        code_key=code_key,
        wall_s=round(time.monotonic() - clock, 3),
        virtual_s=outcome.length_ns / 1e9,
        metrics=analysis.metrics,
        records=records,
        stalls=analysis.stalls,
        fates=analysis.fates,
        violations=analysis.violations,
        answers=analysis.answers,
        captures=captures if keep_captures else {},
        more={path.name: path for path in (workdir / "raw").glob(f"*{layout.COVERAGE}")},
        analysis=analysis_keys(),
    )
