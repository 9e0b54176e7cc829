# SPDX-License-Identifier: Apache-2.0
"""The time since the previous data packet, at each data packet that the receiver got."""

import numpy as np
import pyarrow as pa
from testctl.curves import CurveSpec

SPEC = CurveSpec(
    name="gaps",
    value="gap_ns",
    binned="mean",
    title="Gaps",
    of="time since the previous data packet, at the receiver",
    kind="time",
)


def compute(flow):
    times = flow.arrived["time_ns"]
    return pa.table({"time_ns": times[1:], "gap_ns": np.diff(times)})
