# SPDX-License-Identifier: Apache-2.0
"""Queue marks: what the ECN thresholds of switch ports marked, and what they left, by telemetry.

Counted are data packets that came ECN-capable without CE, were sent on, and met no fate of the plan.
"""

from __future__ import annotations

from testctl.metrics.core.passages import column_of, data_passages
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.records import Records
from testctl.records.schema import CE, FATES

_MARKED = FATES.index("queue_mark")

SPEC = MetricSpec(
    name="queue_marks",
    help="data packets that the ECN thresholds of switch ports marked",
    needs="telemetry",
    values=(
        MetricInfo("queue_marks", "", "data packets marked by a port's threshold, or by the switch's own P4 program"),
        MetricInfo("queue_marked_min_bytes", "B", "shortest queue that a marked one found; NaN without any"),
        MetricInfo("queue_unmarked_max_bytes", "B", "longest queue that an unmarked one found; NaN without any"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    passed = [passage for passage in data_passages(view(records, flow)) if len(passage.rows)]
    if not passed:
        return {info.name: NAN for info in SPEC.values}
    depth, fate, ecn, left = (column_of(passed, name) for name in ("queue_bytes", "fate", "ecn", "left_ns"))
    capable = (ecn != 0) & (ecn != CE) & (left >= 0)
    marked, spared = depth[capable & (fate == _MARKED)], depth[capable & (fate == 0)]
    return {
        "queue_marks": len(marked),
        "queue_marked_min_bytes": int(marked.min()) if len(marked) else NAN,
        "queue_unmarked_max_bytes": int(spared.max()) if len(spared) else NAN,
    }
