# SPDX-License-Identifier: Apache-2.0
"""CE is set on the way, not by hosts."""

from __future__ import annotations

import numpy as np

from testctl.records.schema import CE
from testctl.rules.core.spec import Found, RuleSpec, where
from testctl.rules.core.trace import Trace

SPEC = RuleSpec(
    name="ecn-ce-sent",
    must="TCP sends nothing with CE.",
    source="RFC 3168, 5",
    level="MUST",
    needs=("order",),
    any_clock=True,
    quote="The CE codepoint '11' is set by a router to indicate congestion to the end nodes.",
)


def check(trace: Trace) -> Found:
    return where(
        np.asarray(trace.out & (trace["ecn"] == CE)),
        lambda row: f"sends {trace['seq'][row]} with CE",
    )
