# SPDX-License-Identifier: Apache-2.0
"""Completion time of every request, when it ended."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from testctl.curves.core.spec import CurveSpec
from testctl.metrics import completions
from testctl.metrics.core.view import FlowView

SPEC = CurveSpec(
    name="fct",
    value="fct_ns",
    binned="mean",
    title="Completion time of requests",
    of="each request, when it ended",
    kind="time",
    shape="line with gaps",
    there=lambda flow: (done := completions(flow.records, flow.name)) is not None and len(done.size) > 0,
    log=True,
    place=55,
)


def compute(flow: FlowView) -> pa.Table:
    """time_ns (of the last byte), fct_ns, size (bytes), slowdown (NaN without a rate on the path); of a bin fct_us and
    fct_us_max."""
    done = completions(flow.records, flow.name)
    if done is None:
        empty = pa.array([], pa.int64())
        return pa.table({"time_ns": empty, "fct_ns": empty, "size": empty, "slowdown": pa.array([], pa.float64())})
    order = np.argsort(done.end_ns, kind="stable")
    columns = {"time_ns": done.end_ns, "fct_ns": done.took_ns, "size": done.size, "slowdown": done.slowdown}
    return pa.table({name: values[order] for name, values in columns.items()})
