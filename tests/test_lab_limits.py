# SPDX-License-Identifier: Apache-2.0
"""What a lab may not do: use more memory than it has, and change the machine's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testctl.execution.point import measure
from testctl.lab import memory
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed

from tests.plan_runs import measured

pytestmark = pytest.mark.lab

PAIR = b"""
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [switch:receiver, rate, 100mbit]
  - [bulk, duration, 50ms]
"""


def test_a_lab_whose_memory_is_full_ends_at_once_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (point,) = load_plan(PAIR + b"  - [bulk, parallel, 64]\n", metrics={}).points
    lab = LabTestbed.for_points([point], 3000.0)
    monkeypatch.setenv(memory.SET, "96")
    result = measure(lab, point, tmp_path / "point", keep_captures=False)
    assert result.verdict == "broken"
    words = r"the lab's memory was full: 2 hosts, 1 switch, 2 captures need about \d+ MB; it had 96 MB \(set .*\)"
    assert re.fullmatch(words, result.reason), result.reason
    assert result.wall_s < 300


def test_a_point_with_33_hosts_and_their_captures(tmp_path: Path) -> None:
    """The classical incast: 32 senders, everything at its default."""
    flows = ", ".join(f"f{n}: h{n} -> h1" for n in range(2, 34))
    sizes = ", ".join(f"[f{n}, bytes, 16KiB]" for n in range(2, 34))
    text = f"topology: {{star: {{hosts: 33}}}}\nflows: {{{flows}}}\ntuples: [[switch, rate, 1gbit], {sizes}]\n"
    result = measured(tmp_path / "point", text, keep_captures=True)
    assert (result.verdict, result.reason) == ("pass", "")
    assert len(result.captures) == 33
