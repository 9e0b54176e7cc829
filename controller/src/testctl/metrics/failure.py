# SPDX-License-Identifier: Apache-2.0
"""How a flow's connections failed, as its applications noticed, and when.

An application notices when it reads or writes: one that sleeps, at its next write.
"""

from __future__ import annotations

from testctl.core.outcome import FlowOutcome
from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.metrics.core.view import view
from testctl.plan.model import NO_FAILURE
from testctl.records import Records

SPEC = MetricSpec(
    name="failure",
    help="how connections failed",
    needs="plan",
    values=(
        MetricInfo(
            "failure",
            "",
            "how its connections failed, such as ETIMEDOUT, or incomplete; each word once, the client's first; or none",
            text=True,
        ),
        MetricInfo(
            "failure_time_s",
            "s",
            "from the flow's start to the first failure that one of its applications noticed; NaN when none failed",
        ),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    ends = records.outcome.flows.get(flow, FlowOutcome())
    times = [connection.failed_ns for end in ends.ends for connection in end.failures if connection.failed_ns]
    start_ns = records.outcome.t0_ns + view(records, flow).requested.start_ns
    return {
        "failure": ", ".join(ends.failures) or NO_FAILURE,
        "failure_time_s": (min(times) - start_ns) / 1e9 if times else NAN,
    }
