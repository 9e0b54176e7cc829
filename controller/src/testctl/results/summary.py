# SPDX-License-Identifier: Apache-2.0
"""summary.json: the results of a run, built from the points on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl.results import layout
from testctl.results.reader import RunPoint, load_points


def build_summary(
    run: Path,
    *,
    plan: str,
    started: datetime,
    wall_s: float,
    points: Sequence[RunPoint] | None = None,
    versions: Mapping[str, Any] | None = None,
    expectations: Sequence[Mapping[str, Any]] = (),
    claims: Sequence[Mapping[str, Any]] = (),
    order: Sequence[str] = (),
    about: str = "",
    provenance: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The summary of a run's points.

    points        in the order of the plan; None: read from disk, in the order of `order`
    order         ids of the points as the plan expands them (else sorted by id)
    expectations  [{"name", "verdict", "detail", "points": [ids], "at": "file:line:column",
                    "alone": true where no single point can fail by it}]
    claims        published values of a paper, compared with the points (testctl.plan.Claim)
    provenance    further entries (testctl.results.provenance)
    """
    if points is None:
        place = {point_id: index for index, point_id in enumerate(order)}
        points = sorted(load_points(run), key=lambda point: (place.get(point.id, len(place)), point.id))
    counts = Counter(point.verdict for point in points)
    return {
        "plan": plan,
        "about": about,
        "reproduce": f"testctl run {plan}.yaml",
        "run": run.name.removesuffix(layout.IN_PROGRESS),
        "digest": layout.run_digest((point.id, point.digest) for point in points),
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "counts": {verdict: counts[verdict] for verdict in layout.VERDICTS},
        "expectations": [dict(expectation) for expectation in expectations],
        **({"claims": [dict(claim) for claim in claims]} if claims else {}),
        "versions": dict(versions or {}),
        **(provenance or {}),
        "points": [point.summary() for point in points],
    }
