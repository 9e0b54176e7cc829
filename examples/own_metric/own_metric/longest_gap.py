# SPDX-License-Identifier: Apache-2.0
"""The longest time between two data packets at the receiver."""

import numpy as np
from testctl.metrics import MetricInfo, MetricSpec
from testctl.metrics.core.view import view

SPEC = MetricSpec(
    name="longest_gap",
    help="the longest time between two data packets at the receiver",
    needs="receiver",
    values=(MetricInfo("longest_gap_s", "s", "the longest time between two data packets at the receiver", "lower"),),
)


def compute(records, flow):
    times = view(records, flow).arrived["time_ns"]
    return {"longest_gap_s": float(np.diff(times).max()) / 1e9 if len(times) > 1 else float("nan")}
