# SPDX-License-Identifier: Apache-2.0
"""Recoveries: every loss recovery of a flow, from the packets at its sender."""

from testctl.metrics.recovery.events import tcp_events
from testctl.metrics.recovery.kernel_trace import traced_events
from testctl.metrics.recovery.summary import SPEC, compute
from testctl.metrics.recovery.table import RECOVERIES, flow_recoveries, flow_walks, recoveries_table

__all__ = [
    "RECOVERIES",
    "SPEC",
    "compute",
    "flow_recoveries",
    "flow_walks",
    "recoveries_table",
    "tcp_events",
    "traced_events",
]
