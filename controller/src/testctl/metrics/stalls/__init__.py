# SPDX-License-Identifier: Apache-2.0
"""Stalls: every silence of a flow's data longer than a few round trips, with cause and proof."""

from testctl.metrics.stalls.summary import SPEC, compute
from testctl.metrics.stalls.table import STALLS, flow_stalls, stalls_table

__all__ = ["SPEC", "STALLS", "compute", "flow_stalls", "stalls_table"]
