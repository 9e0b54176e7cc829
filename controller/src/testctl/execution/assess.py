# SPDX-License-Identifier: Apache-2.0
"""Computes a point's results from its records: metrics, stalls, fates, violations, whether the measurement is valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
from testctl_agent.spec import fate

from testctl.core.point import Settings
from testctl.core.temporal import Answers, Temporal
from testctl.metrics import Number, analyse, instruments_agree, key_of_others
from testctl.packet_actions import check_fates
from testctl.records import Records
from testctl.rules import violations_of
from testctl.system.code_hash import hash_of, modules_below
from testctl.system.text import first_of
from testctl.temporal import answers_of

_COMPUTE = ("testctl.metrics", "testctl.packet_actions", "testctl.rules", "testctl.temporal")
MAX_DOUBTS = 8
"""Maximum number of listed reasons why a point is invalid."""


@dataclass(frozen=True)
class Assessment:
    """The verdict before any expectation of a plan.

    verdict: "pass"; "invalid" with what speaks against the measurement; "fail" if the lab's kernel reported a fault
    reason: why; also lists failed connections, which only a plan's expectations judge
    """

    verdict: str
    reason: str
    metrics: Mapping[str, Mapping[str, Number]]
    stalls: pa.Table
    fates: Sequence[Mapping[str, Any]]
    violations: Sequence[Mapping[str, Any]]
    answers: Answers = field(default_factory=dict)


def assess(records: Records, conditions: Sequence[Temporal] = ()) -> Assessment:
    """The results computed from records alone, deterministically.

    conditions: over the trace, which are answered
    """
    violations = violations_of(records)  # before the metrics hold columns too
    analysis = analyse(records)
    fates, unlike_asked = check_fates(records)
    faults = records.outcome.kernel_faults
    faulty = f"the lab's kernel reports a fault of its own: {'; '.join(faults)}" if faults else ""
    doubts = [*records.outcome.drift, *unlike_asked, *instruments_agree(records)]
    return Assessment(
        verdict="fail" if faulty else "invalid" if doubts else "pass",
        reason="; ".join(filter(None, [faulty, *_failures(records), first_of(doubts, MAX_DOUBTS, "; ")])),
        metrics=analysis.metrics,
        stalls=analysis.stalls,
        fates=[fate.to_json() for fate in fates],
        violations=violations,
        answers=answers_of(records, conditions),
    )


def _failures(records: Records) -> Iterator[str]:
    """Each end of a flow whose connections failed, by the words of its generator."""
    for name, flow in records.outcome.flows.items():
        for side, end in (("client", flow.client), ("server", flow.server)):
            if end.failures:
                error = str(end.error or end.failures[0].error)
                why = _dropped_again(records.point.state, name) if "timeouts" in error else ""
                yield f"flow {name}, {side}: {error}{why}"


def _dropped_again(state: Settings, flow: str) -> str:
    """A note on packet actions that also drop a flow's retransmissions; "" if there are none."""
    rules = [rule for values in state.values() for rule in fate.parse(str(values.get("fate", fate.NONE)))]
    drops = [r for r in rules if r.flow == flow and r.action == "drop" and r.what != "acks" and not r.first]
    if not drops:
        return ""
    return f"; the fate {fate.show(drops)!r} drops what is sent again too, with ', first' at its end it would not"


@cache
def analysis_keys() -> dict[str, str]:
    """Hashes of the code that makes records from raw files, and of the code that computes metrics from records.

    Raw files are not kept, records are: with other code of the first a point is run again, with other code of the
    second it is computed again.  Metrics of other distributions count.
    """
    own = ["testctl.execution.assess", *(module for package in _COMPUTE for module in modules_below(package))]
    return {
        "records": hash_of(["testctl.records.store"]),
        "metrics": "-".join(filter(None, [hash_of(own), key_of_others()])),
    }
