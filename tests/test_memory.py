# SPDX-License-Identifier: Apache-2.0
"""How much memory a lab has, or has left, moves no packet: captures of any size are written out in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.lab import machine
from testctl.plan import load_plan
from testctl.records import load_raw
from testctl.results.atomic import write_json
from testctl.testbeds.lab import LabTestbed

PLAN = b"""
about: a flow whose captures fill the page cache's share of dirty memory
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, cc, cubic]
  - [switch, rate, 1gbit]
  - [switch:receiver, buffer, 300kB]
  - [switch, delay, 1ms]
  - [bulk, duration, 5s]
"""


@pytest.mark.lab
def test_less_memory_the_same_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = load_plan(PLAN).points
    digests = []
    for megabytes in (896, 2048):  # less would make TCP's largest buffers smaller
        monkeypatch.setattr(machine, "MEMORY_MB", megabytes)
        where = tmp_path / str(megabytes)
        raw = where / "raw"
        raw.mkdir(parents=True)
        asked, outcome = LabTestbed.for_points(points).run(points[0], raw)
        assert outcome["error"] is None
        write_json(where / "point.json", asked)
        write_json(raw / "outcome.json", outcome)
        assert sum(path.stat().st_size for path in raw.glob("*/capture/*")) > 120 << 20
        digests.append(load_raw(where).digest())
    assert digests[0] == digests[1]
