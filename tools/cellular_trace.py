#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes plans/traces/cellular.trace: a link whose rate wanders as a cellular one's does, made up and not measured.

Every 50 ms the rate is multiplied by a random factor and kept within 1 to 40 Mb/s; twice nothing leaves for some time,
as in a handover.  An opportunity of 1500 bytes comes when the rate's integral has grown by as much.
"""

from __future__ import annotations

import random
import sys

PERIOD_MS, STEP_MS = 4000, 50
LEAST_MBPS, MOST_MBPS = 1.0, 40.0
OUTAGES_MS = ((1500, 1620), (3100, 3180))
OPPORTUNITY_MEGABITS = 1500 * 8 / 1e6


def main() -> None:
    rng = random.Random(1)
    rate_mbps, megabits = 12.0, 0.0
    for ms in range(1, PERIOD_MS + 1):
        if ms % STEP_MS == 0:
            rate_mbps = min(max(rate_mbps * rng.lognormvariate(0.0, 0.35), LEAST_MBPS), MOST_MBPS)
        if not any(low <= ms < high for low, high in OUTAGES_MS):
            megabits += rate_mbps / 1000
        while megabits >= OPPORTUNITY_MEGABITS or (ms == PERIOD_MS and megabits > 0):
            sys.stdout.write(f"{ms}\n")
            megabits -= OPPORTUNITY_MEGABITS


if __name__ == "__main__":
    main()
