# SPDX-License-Identifier: Apache-2.0
"""What is computed from a point's records: metrics, stalls, fates, and whether the measurement is valid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from testctl.metrics import Number, analyse, instruments_agree, key_of_others
from testctl.packet_actions import check_fates
from testctl.records import Records
from testctl.system.code_hash import hash_of, modules_below
from testctl.system.text import first_of

MAX_DOUBTS = 8
"""Maximum number of listed reasons why a point is invalid."""


@dataclass(frozen=True)
class Assessment:
    """The verdict before any expectation of a plan.

    verdict: "pass"; "invalid" with what speaks against the measurement; "fail" if the lab's kernel reported a fault
    """

    verdict: str
    reason: str
    metrics: Mapping[str, Mapping[str, Number]]
    stalls: pa.Table
    fates: Sequence[Mapping[str, Any]]


def assess(records: Records) -> Assessment:
    """Everything that is computed from records alone, the same each time."""
    analysis = analyse(records)
    fates, unlike_asked = check_fates(records)
    faults = records.outcome.kernel_faults
    faulty = f"the lab's kernel reports a fault of its own: {'; '.join(faults)}" if faults else ""
    doubts = [*records.outcome.drift, *unlike_asked, *instruments_agree(records)]
    return Assessment(
        verdict="fail" if faulty else "invalid" if doubts else "pass",
        reason="; ".join(filter(None, [faulty, first_of(doubts, MAX_DOUBTS, "; ")])),
        metrics=analysis.metrics,
        stalls=analysis.stalls,
        fates=[found.to_json() for found in fates],
    )


@cache
def analysis_keys() -> dict[str, str]:
    """Hashes of the code that makes records from raw files, and of the code that computes metrics from records.

    Raw files are not kept, records are: with other code of the first a point is run again, with other code of the
    second it is computed again.  Metrics of other distributions count.
    """
    own = ["testctl.execution.assess", *modules_below("testctl.metrics"), *modules_below("testctl.packet_actions")]
    return {
        "records": hash_of(["testctl.records.store"]),
        "metrics": "-".join(filter(None, [hash_of(own), key_of_others()])),
    }
