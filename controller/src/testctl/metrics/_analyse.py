# SPDX-License-Identifier: Apache-2.0
"""Every metric of a point.

docs/performance.md says where the time goes.  Each stall costs about 100 µs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from testctl.core.point import POINT_WIDE
from testctl.metrics.core.registry import checked, metrics
from testctl.metrics.core.spec import NAN, Number
from testctl.metrics.core.view import MANY, forget_columns
from testctl.metrics.counter_mismatches import mismatches
from testctl.metrics.stalls import stalls_table
from testctl.records import Records
from testctl.system.memory import freed_is_kept


@dataclass(frozen=True)
class Analysis:
    """metrics: {flow: {name: number}}, point-wide ones under "*"; stalls: a table of schema STALLS."""

    metrics: dict[str, dict[str, Number]]
    stalls: pa.Table


def analyse(records: Records) -> Analysis:
    """All metrics of all flows and the stalls.  A value that can't be known is NaN."""
    values: dict[str, dict[str, Number]] = {name: {} for name in (*records.flows, POINT_WIDE)}
    with freed_is_kept():
        for flow in values:
            scope = "point" if flow == POINT_WIDE else "flow"
            for metric in metrics().values():
                if metric.spec.scope == scope:
                    values[flow] |= checked(metric, records, flow)
            if records.packets.num_rows > MANY:
                forget_columns(records)
        for mismatch in mismatches(records):
            for flow in mismatch.flows:
                values[flow] |= dict.fromkeys(mismatch.values, NAN)
        return Analysis(values, stalls_table(records))
