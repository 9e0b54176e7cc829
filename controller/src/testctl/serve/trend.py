# SPDX-License-Identifier: Apache-2.0
"""One metric of one point over the runs that have that point, and where its level changed.

A point is named by the hash of what determines it, so that the same id in two runs is the same test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testctl_agent.spec.errors import TestctlError

from testctl.charts.trend import Seen, trend
from testctl.compare import change_points
from testctl.core.point import POINT_WIDE
from testctl.core.units import show_metric
from testctl.report.metrics import number_of
from testctl.serve import listing
from testctl.serve.cache import Cache, stamp
from testctl.serve.runs import Runs, point_of


class Trends:
    """Trends over the runs of a results directory; a point's files are read once while they are the same."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._read = Cache(20_000)

    def trend(self, point: str, metric: str, flow: str) -> dict[str, Any]:
        """The values in order of the runs' starts; change points are positions in `runs`.  Raises Unknown."""
        rows: list[dict[str, Any]] = []
        names: set[str] = set()
        flows: dict[str, None] = {}
        exact = True
        for line in reversed(self._runs.lines()):
            place = self._runs.root / str(line["name"])
            found = self._point(place, point)
            if found is None:
                continue
            exact &= bool(line["exact"])
            names |= {name for values in found.metrics.values() for name in values}
            flows |= dict.fromkeys(name for name in found.metrics if name != POINT_WIDE)
            value = number_of(found, metric, flow)
            rows.append({key: line[key] for key in ("name", "started", "kernels", "state")} | {
                "value": value, "shown": show_metric(metric, value), "verdict": found.verdict,
                "digest": found.digest, "tuples": [list(item) for item in found.tuples],
            })  # fmt: skip
        if not rows:
            raise listing.Unknown(f"no run here has a point {point[:100]!r}")
        changes = change_points([row["value"] for row in rows], exact=exact)
        seen = [Seen(str(row["name"]), str(row["started"]), row["verdict"], row["value"]) for row in rows]
        known = sum(row["value"] is not None for row in rows)
        return {
            "point": point,
            "metric": metric,
            "flow": flow,
            "tuples": rows[-1]["tuples"],
            "metrics": sorted(names),
            "flows": list(flows),
            "runs": [{key: value for key, value in row.items() if key != "tuples"} for row in rows],
            "changes": changes,
            "chart": trend(metric, seen, changes).to_json() if known > 1 else None,
        }

    def _point(self, run: Path, point: str) -> Any:
        try:
            place = listing.points(run).get(point)
            return place and self._read.get(place, stamp(place), lambda: point_of(place))
        except TestctlError:
            return None
