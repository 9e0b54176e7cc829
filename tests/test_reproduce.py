# SPDX-License-Identifier: Apache-2.0
"""A run, a plan inferred from its packets alone, and that plan's run: the packets at the sender are the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl.plan import load_plan

from tests.cli_commands import output
from tests.plan_runs import run_of

PLAN = """
topology: pair
flows: {bulk: sender -> receiver, other: sender -> receiver}
tuples:
  - [hosts, cc, scalable]
  - [hosts, gro, on]
  - [switch:receiver, rate, 20mbit]
  - [switch:receiver, buffer, 250kB]
  - [switch, delay, 3ms]
  - [switch, fate, "drop data 20-22,90 of bulk, first"]
  - [bulk, bytes, 300kB]
  - [other, pattern, "schedule 0s:40kB,200ms:90kB"]
"""


@pytest.mark.lab
def test_round_trip(tmp_path: Path) -> None:
    (point,) = run_of(tmp_path, PLAN).points
    file = point.path / "point.json"
    kept = json.loads(file.read_text())
    flows = [flow | {"options": {}} for flow in kept["flows"]]
    # of what was requested nothing is read
    file.write_text(json.dumps(kept | {"settings": {}, "state": {}, "tuples": [], "flows": flows}))
    text = output(tmp_path, "reproduce", "run", "--run", "--out", "again.yaml")
    assert "packets at the sender are the same, with their times" in text
    assert "other causes of the same packets can't be excluded" in text
    values = {(item.entity, item.param): item.texts for item in load_plan(tmp_path / "again.yaml").assignments}
    assert values["switch:receiver", "rate"] == ("20mbit",)
    assert values["switch", "fate"] == ("drop data 20-22,90 of bulk, first",)
    assert values["hosts", "cc"] == ("scalable",)
    assert "exists already" in output(tmp_path, "reproduce", "run", "--out", "again.yaml", code=2)
    assert "want --run or --out" in output(tmp_path, "reproduce", "run", "--json", code=2)
