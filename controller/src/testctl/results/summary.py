# SPDX-License-Identifier: Apache-2.0
"""summary.json: what a run found, in the form that DESIGN.md fixes, built from the points on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testctl.results import layout
from testctl.results.reader import load_points


def build_summary(
    run: Path,
    *,
    plan: str,
    started: datetime,
    wall_s: float,
    versions: Mapping[str, Any],
    expectations: Sequence[Mapping[str, Any]] = (),
    claims: Sequence[Mapping[str, Any]] = (),
    order: Sequence[str] = (),
    about: str = "",
    reproduce: str = "",
) -> dict[str, Any]:
    """The summary of a run's points as they lie on disk.

    order         ids of the points as the plan expands them (else sorted by id)
    expectations  [{"name", "verdict", "detail", "points": [ids]}]
    claims        what a paper published, held against the points (testctl.plan.Claim)
    reproduce     the command that does it again
    """
    place = {point_id: index for index, point_id in enumerate(order)}
    points = [point.summary() for point in load_points(run)]
    points.sort(key=lambda point: (place.get(point["id"], len(place)), point["id"]))
    counts = Counter(point["verdict"] for point in points)
    return {
        "plan": plan,
        "about": about,
        "reproduce": reproduce or f"testctl run {plan}.yaml",
        "run": run.name.removesuffix(layout.IN_PROGRESS),
        "digest": layout.run_digest((point["id"], point["digest"]) for point in points),
        "started": started.astimezone(UTC).isoformat(timespec="seconds"),
        "wall_s": round(wall_s, 3),
        "counts": {verdict: counts[verdict] for verdict in layout.VERDICTS},
        "expectations": [dict(expectation) for expectation in expectations],
        **({"claims": [dict(claim) for claim in claims]} if claims else {}),
        "versions": dict(versions),
        "points": points,
    }
