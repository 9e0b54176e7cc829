# SPDX-License-Identifier: Apache-2.0
"""A switch whose agent dies in a run: the point is broken, in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl.plan import load_plan
from testctl.testbeds.point_spec import spec_of
from testctl_agent.switch import testbed_object

PLAN = """
topology: pair
flows: {bulk: sender -> receiver}
tuples:
  - [hosts, capture, off]
  - [hosts, tcp_info, off]
  - [switch:receiver, rate, 100mbit]
  - [bulk, duration, 100ms]
"""


@pytest.mark.lab
def test_the_point_is_broken(in_lab: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "point.json").write_text(json.dumps(spec_of(load_plan(tmp_path / "plan.yaml").points[0]).to_json()))
    script = Path(__file__).with_name("lab_switch_dies.py").read_text()
    said = in_lab(script, TESTCTL_PROGRAM=str(testbed_object.compiled()), POINT=str(tmp_path / "point.json"))
    error, flows = said.splitlines()[-2:]
    assert error.startswith('"agent switch: '), said
    assert flows == "flows that ended: bulk"
