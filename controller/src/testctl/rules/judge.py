# SPDX-License-Identifier: Apache-2.0
"""Judges all connections of a point by all rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from testctl.records import Records
from testctl.rules.core.registry import rules
from testctl.rules.core.spec import Found, Violation
from testctl.rules.core.trace import Trace, trace_of


@dataclass(frozen=True)
class Verdict:
    """What a rule says of one end of a flow."""

    rule: str
    trace: Trace
    found: Found

    def packets(self, violation: Violation) -> tuple[int, ...]:
        """Rows of the packets table: the packet that breaks the rule, then those that prove it."""
        return tuple(int(self.trace.index[row]) for row in (violation.row, *violation.proof))


def judged(records: Records, names: tuple[str, ...] = ()) -> Iterator[Verdict]:
    """Every rule (of these names, or all) over every end of a flow that was captured."""
    for flow in records.flows:
        ends = records.point.flow(flow)
        if ends is None:
            continue
        traces = [
            trace_of(records, flow, end) if records.recorded(host, "capture") else None
            for end, host in enumerate(ends.ends)
        ]
        for trace, other in (traces, traces[::-1]):
            if trace is None or not len(trace):
                continue
            for name, rule in rules().items():
                if not names or name in names:
                    yield Verdict(name, trace, rule.check(trace, other))
