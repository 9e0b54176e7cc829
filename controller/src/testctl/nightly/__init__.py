# SPDX-License-Identifier: Apache-2.0
"""A plan every night within a budget: the most valuable points first, and what changed since the night before."""

from testctl.nightly.cost import cost_ms
from testctl.nightly.history import KEY, Last, interrupted, last_night, nights
from testctl.nightly.night import Night
from testctl.nightly.schedule import Schedule, like, schedule

__all__ = [
    "KEY",
    "Last",
    "Night",
    "Schedule",
    "cost_ms",
    "interrupted",
    "last_night",
    "like",
    "nights",
    "schedule",
]
