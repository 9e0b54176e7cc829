# SPDX-License-Identifier: Apache-2.0
"""Judges all connections of a point by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testctl.records import Records
from testctl.rules.core.registry import rules
from testctl.rules.core.spec import Found, Violation, undecided
from testctl.rules.core.trace import Trace, trace_of
from testctl.system.memory import freed_is_kept

_BY_THE_WALL_CLOCK = "by the wall clock a capture does not tell when TCP dealt with what it has"


@dataclass(frozen=True)
class Verdict:
    """What a rule says of one end of a flow."""

    rule: str
    trace: Trace
    found: Found

    def packets(self, violation: Violation) -> tuple[int, ...]:
        """Rows of the packets table: the packet that breaks the rule, then those that prove it."""
        return tuple(int(self.trace.index[row]) for row in (violation.row, *violation.proof))

    def value(self, name: str, violation: Violation) -> int:
        """A column at the packet that breaks the rule; the whole column is not kept for it."""
        return int(self.trace.records.values(name, self.trace.index[[violation.row]])[0])

    def to_json(self) -> dict[str, Any]:
        """first: the first violations, each with its time in ns, its packets and a sentence."""
        trace = self.trace
        first = [
            {
                "conn": self.value("conn", violation),
                "time_ns": self.value("time_ns", violation),
                "packets": list(self.packets(violation)),
                "text": violation.text,
            }
            for violation in self.found.first
        ]
        return {"rule": self.rule, "flow": trace.flow, "host": trace.host, "count": self.found.count, "first": first}


def judged(records: Records, names: tuple[str, ...] = ()) -> Iterator[Verdict]:
    """Every rule (of these names, or all) over every end of a flow that was captured."""
    for flow in records.point.flows:
        for end, host in enumerate(flow.ends):
            if not records.recorded(host, "capture") or not len(trace := trace_of(records, flow.name, end)):
                continue
            for name, rule in rules().items():
                if not names or name in names:
                    why = records.outcome.unjudged.get(flow.name) or (
                        _BY_THE_WALL_CLOCK if trace.late_capture and not rule.spec.any_clock else ""
                    )
                    yield Verdict(name, trace, undecided(why) if why else rule.found(trace))
            trace.forget()


def _all(records: Records) -> list[Verdict]:
    """Verdicts with a violation, computed once."""
    key = ("violations",)
    if key not in records.memo:
        with freed_is_kept(all_sizes=True):
            records.memo[key] = [verdict for verdict in judged(records) if verdict.found.count]
    listed: list[Verdict] = records.memo[key]
    return listed


def violations_of(records: Records) -> list[dict[str, Any]]:
    """All violations of a point as JSON: an entry for each flow, end and rule that has any."""
    return [verdict.to_json() for verdict in _all(records)]


def violated(records: Records, flow: str) -> dict[str, int]:
    """Rule -> violations of a flow, at both ends."""
    counts: Counter[str] = Counter()
    for verdict in _all(records):
        if verdict.trace.flow == flow:
            counts[verdict.rule] += verdict.found.count
    return dict(sorted(counts.items()))


def first_violation(records: Records, flow: str) -> str:
    """A sentence about the first violation of a flow, "rule: at 61.2 ms receiver acknowledges …"; "" without any."""
    first = [
        (verdict.value("time_ns", one), verdict, one)
        for verdict in _all(records)
        if verdict.trace.flow == flow
        for one in verdict.found.first
    ]
    if not first:
        return ""
    time_ns, verdict, one = min(first, key=lambda entry: (entry[0], entry[1].rule))
    return f"{verdict.rule}: at {time_ns / 1e6:.6g} ms {verdict.trace.host} {one.text}"
