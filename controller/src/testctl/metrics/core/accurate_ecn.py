# SPDX-License-Identifier: Apache-2.0
"""Which connections agreed on Accurate ECN (draft-ietf-tcpm-accurate-ecn, section 3.1).

There ECE is no echo of a mark but the lowest bit of a counter of three, ACE: AE, CWR and ECE.
"""

from __future__ import annotations

import numpy as np

from testctl.metrics.core.memo import once
from testctl.metrics.core.view import FlowView, rows_of
from testctl.records.schema import ACK, CWR, ECE, SYN

_OFFER = 0b111
_ANSWERS = (0b010, 0b011, 0b100, 0b110)
"""ACE of a SYN-ACK that agrees, by the ECN field that the SYN came with."""


@once
def accurate_ecn(flow: FlowView) -> frozenset[int]:
    """The connections whose SYN offers Accurate ECN and whose SYN-ACK takes it, as any capture shows it."""
    offered, taken = set[int](), set[int]()
    for host in (flow.sender, flow.receiver):
        for direction, out in ((0, True), (0, False), (1, True), (1, False)):
            rows = rows_of(flow.records, flow.name, host, direction, out=out)
            syns = rows.where(rows["flags"] & SYN > 0) if len(rows) else rows
            answer = syns["flags"] & ACK > 0
            ace = syns["ae"] << 2 | (syns["flags"] & CWR > 0) << 1 | (syns["flags"] & ECE > 0)
            offered |= set(syns["conn"][~answer & (ace == _OFFER)].tolist())
            taken |= set(syns["conn"][answer & np.isin(ace, _ANSWERS)].tolist())
    return frozenset(offered & taken)
