# SPDX-License-Identifier: Apache-2.0
"""TCP's internals at every ACK and transmission, by the sender's kernel and its capture."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics.core.view import FlowView
from testctl.metrics.recovery.events import tcp_events
from testctl.metrics.recovery.kernel_trace import traced_events
from testctl.records.schema import numbers_of

SPEC = CurveSpec(name="tcp", value="cwnd", binned="last", by=("source", "conn"))


def compute(flow: FlowView) -> pa.Table:
    """The columns of TCP_EVENTS, in order of time; with a width, the last event of each bin, connection and source."""
    traced, captured = traced_events(flow.records, flow.name), tcp_events(flow.records, flow.name)
    if not traced.num_rows:
        return captured
    table = pa.concat_tables([traced, captured]).unify_dictionaries().combine_chunks()
    return table.take(pa.array(np.argsort(numbers_of(table, "time_ns"), kind="stable")))
