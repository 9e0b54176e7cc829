# SPDX-License-Identifier: Apache-2.0
"""How often a flow broke what every TCP must do (testctl.rules)."""

from __future__ import annotations

from testctl.metrics.core.spec import NAN, MetricInfo, MetricSpec, Number
from testctl.records import Records
from testctl.rules import first_violation, violated

SPEC = MetricSpec(
    name="violations",
    help="packets that break a rule of TCP (`testctl rules` lists them), at both ends of the flow",
    needs="sender or receiver",
    values=(
        MetricInfo(
            "violations", "", "number of packets that break a rule; NaN without a capture of either end", "lower"
        ),
        MetricInfo(
            "rules_violated", "", "the rules that they break, by name, with how often each; none without any", text=True
        ),
        MetricInfo("first_violation", "", "the first of them in a sentence; none without any", text=True),
    ),
)


def compute(records: Records, flow: str) -> dict[str, Number]:
    ends = records.point.flow(flow)
    recorded = ends is not None and any(records.recorded(host, "capture") for host in ends.ends)
    if not recorded or flow in records.outcome.unjudged:
        return {"violations": NAN, "rules_violated": NAN, "first_violation": NAN}
    counts = violated(records, flow)
    return {
        "violations": sum(counts.values()),
        "rules_violated": ", ".join(f"{rule} {count}" for rule, count in counts.items()) or "none",
        "first_violation": first_violation(records, flow) or "none",
    }
