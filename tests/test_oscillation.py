# SPDX-License-Identifier: Apache-2.0
"""The period of Reno's sawtooth, where every 400th packet is lost: that between its retransmissions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.plan_runs import measured, records_of

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, reno]
  - [switch:receiver, rate, 1gbit]
  - [switch, delay, 20ms]
  - [switch, fate, drop data every 400 of bulk]
  - [bulk, duration, 60s]
"""


@pytest.mark.lab
def test_the_period_of_a_sawtooth(tmp_path: Path) -> None:
    """18 round trips of 40 ms; the first slow start does not count."""
    result = measured(tmp_path / "point", PLAN)
    packets = records_of(result).packets
    again = np.array(packets["retrans"].to_pylist(), bool) & (np.array(packets["where"].to_pylist()) == "sender")
    true_ms = float(np.median(np.diff(np.array(packets["time_ns"].to_pylist())[again]))) / 1e6
    assert true_ms == pytest.approx(720.4, abs=0.5)
    found = result.metrics["bulk"]
    assert found["oscillation_period_ms"] == pytest.approx(true_ms, rel=0.005)
    assert 0.8 < float(found["oscillation_strength"] or 0) <= 1
