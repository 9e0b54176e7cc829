# SPDX-License-Identifier: Apache-2.0
"""Requests that took longer than the deadline that the plan gives their flow."""

from __future__ import annotations

from testctl.metrics.core.completions import completions
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records

SPEC = MetricSpec(
    name="deadline",
    help="requests that took longer than their flow's `deadline`, or did not end; NaN without one",
    needs="requests",
    values=(
        MetricInfo("deadline_misses", "", "requests that missed their deadline", "lower"),
        MetricInfo("deadline_miss_rate", "", "their share of all requests", "lower"),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    timed, done = records.point.flow(flow), completions(records, flow)
    deadline = timed.options.get("deadline") if timed is not None else None
    if done is None or deadline is None:
        return {"deadline_misses": NAN, "deadline_miss_rate": NAN}
    missed = int((done.took_ns > int(deadline)).sum()) + done.unknown
    return {"deadline_misses": missed, "deadline_miss_rate": missed / (len(done.size) + done.unknown)}
