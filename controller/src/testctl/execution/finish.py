# SPDX-License-Identifier: Apache-2.0
"""Completes a run: judges its points, writes its summary and report, and gives it its final name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from testctl.execution.options import Options
from testctl.metrics import brought
from testctl.plan import Claim, ExpectationVerdict, Plan, evaluate, evaluate_claims
from testctl.report import write_report
from testctl.report.prepared import prepared
from testctl.results import Run, RunPoint, RunWriter, layout
from testctl.results.point import set_verdict
from testctl.results.provenance import Provenance
from testctl.results.reader import load_points
from testctl.results.summary import build_summary
from testctl.results.versions import collect_versions
from testctl.results.work import WORK, clear_work

Judged = Callable[[Run], Callable[[str], None]]
"""Callback: receives a run whose points are judged, before its report is drawn.

Returns a callback, called with the id of each point that is drawn.
"""


def complete(
    plan: Plan,
    writer: RunWriter,
    options: Options,
    started: datetime,
    wall_s: float,
    *,
    points: Iterable[RunPoint] | None = None,
    more: Mapping[str, Any] | None = None,
    judged: Judged | None = None,
) -> Run:
    """Judge the points of a run in progress, write its summary and its report, and give it its final name.

    points  the run's points, if the caller has read them; None: they are read here, each once
    more    further entries of summary.json
    judged  is called before the report is drawn, which can take minutes
    """
    place = {point.id: index for index, point in enumerate(plan.points)}
    loaded = load_points(writer.path) if points is None else points
    there = sorted(loaded, key=lambda point: (place.get(point.id, len(place)), point.id))
    there, expectations, claims = _judge(plan, there)
    others = brought()
    # The full releases of the kernels that ran, by their series.
    releases: dict[str, list[str]] = {}
    for release in sorted({point.kernel for point in there if point.kernel}):
        releases.setdefault(".".join(release.split(".")[:2]), []).append(release)
    versions = collect_versions(
        kernels={series: ", ".join(of_it) for series, of_it in releases.items()},
        **({"tree": plan.tree} if plan.tree else {}),
        **({"metrics": others} if others else {}),
    )
    writer.write_versions(versions)
    summary = build_summary(
        writer.path,
        points=there,
        plan=plan.name,
        started=started,
        wall_s=wall_s,
        expectations=[expectation.to_json() for expectation in expectations],
        claims=[claim.to_json() for claim in claims],
        about=plan.about,
        provenance=Provenance.of(plan, options.results_dir, options.jobs, versions).to_json(),
    )
    summary |= more or {}
    drawn = prepared(writer.path)
    run = Run(writer.path, summary, tuple(there))
    tell = judged(run) if judged is not None else None
    write_report(run, specs=plan.figures, jobs=max(options.jobs, options.report_jobs), tell=tell, data=drawn)
    clear_work(writer.path / WORK)  # its presence marks a run in progress
    final = writer.finish(summary)
    return Run(final, summary, tuple(replace(point, path=layout.point_dir(final, point.id)) for point in there))


def _judge(
    plan: Plan, points: Sequence[RunPoint]
) -> tuple[list[RunPoint], Sequence[ExpectationVerdict], Sequence[Claim]]:
    """Judge the points by the plan's `expect`; writes each verdict that differs from that in the point's file."""
    results = {point.id: point.measured for point in points}
    verdicts, expectations = evaluate(plan, results)
    by = {verdict.point: (verdict.verdict, verdict.reason) for verdict in verdicts}
    judged = [set_verdict(point, *by.get(point.id, (point.verdict, point.reason))) for point in points]
    return judged, expectations, evaluate_claims(plan, results, expectations)
