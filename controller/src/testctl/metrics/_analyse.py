# SPDX-License-Identifier: Apache-2.0
"""Every metric of a point.

Where the time goes, in ms of one core per million packets of two captures (bulk, one flow):
reading the files and finding the records 120, decoding headers and options 180, the table
(relative numbers, retransmissions, sorting by time, Arrow) 200, all metrics 110.  Together 1.5 M
packets a second; with 2 % of packets lost 1.2 M, as departures and arrivals must be matched one
by one.  Each stall costs about 100 µs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from testctl.metrics.core.registry import checked, metrics
from testctl.metrics.core.spec import Number
from testctl.metrics.stalls import stalls_table
from testctl.records import Records

POINT = "*"


@dataclass(frozen=True)
class Analysis:
    """metrics: {flow: {name: number}}, point-wide ones under "*"; stalls: a table of schema STALLS."""

    metrics: dict[str, dict[str, Number]]
    stalls: pa.Table


def analyse(records: Records) -> Analysis:
    """All metrics of all flows and the stalls.  A value that can't be known is NaN."""
    values: dict[str, dict[str, Number]] = {name: {} for name in (*records.flows, POINT)}
    for metric in metrics().values():
        for flow in records.flows if metric.spec.scope == "flow" else [POINT]:
            values[flow] |= checked(metric, records, flow)
    return Analysis(values, stalls_table(records))
