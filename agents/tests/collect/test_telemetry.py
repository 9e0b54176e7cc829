# SPDX-License-Identifier: Apache-2.0
"""The switch's times on the clock of everything else."""

from __future__ import annotations

import random

import pytest
from testctl_agent.collect import telemetry

OFFSET_NS = 1_700_000_000_123_456_789
STEP_NS = 256


@pytest.mark.parametrize("seed", range(5))
def test_the_offset_is_exact_though_others_read_the_clock_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the lab: a reading moves the clock by a step, and now and then others read it in between."""
    chance = random.Random(seed)
    now = 10**9

    def reading() -> int:
        nonlocal now
        now += STEP_NS * (1 + (chance.randrange(1, 20) if chance.random() < 0.3 else 0))
        return now

    monkeypatch.setattr(telemetry.time, "monotonic_ns", reading)
    monkeypatch.setattr(telemetry.time, "time_ns", lambda: reading() + OFFSET_NS)
    assert telemetry.clock_offset_ns() == OFFSET_NS
