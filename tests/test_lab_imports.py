# SPDX-License-Identifier: Apache-2.0
"""A lab imports nothing that its file of code has not: looking for it elsewhere is slow."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.core.outcome import Outcome
from testctl.execution.point import measure
from testctl.lab import machine
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed

PLAN = b"""
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch:receiver, rate, 100mbit]
  - [hosts, capture, "on"]
  - [hosts, tcp_info, 10ms]
  - [bulk, duration, 10ms]
"""


@pytest.mark.lab
def test_nothing_is_looked_for_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: set[str] = set()
    outcome_of = machine.outcome_of

    def seen(home: Path) -> Outcome:
        left.update(path.name for path in home.iterdir())
        return outcome_of(home)

    monkeypatch.setattr(machine, "outcome_of", seen)
    (point,) = load_plan(PLAN, metrics={}).points
    result = measure(LabTestbed.for_points([point]), point, tmp_path / "point", keep_captures=False)
    assert result.verdict == "pass", result.reason
    assert "imports" in left
    assert "site" not in left
