# SPDX-License-Identifier: Apache-2.0
"""A switch whose agent dies in a run or can't begin: the point is broken, in words.  Many switches: none is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from testctl.execution.point import measure
from testctl.plan import load_plan
from testctl.testbeds.lab import LabTestbed
from testctl.testbeds.point_spec import spec_of
from testctl_agent.switch import testbed_object

from tests.plan_runs import measured

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
    (tmp_path / "point.json").write_text(json.dumps(spec_of(load_plan(PLAN).points[0]).to_json()))
    script = Path(__file__).with_name("lab_switch_dies.py").read_text()
    said = in_lab(
        script,
        TESTCTL_PROGRAM=str(testbed_object.path()),
        POINT=str(tmp_path / "point.json"),
        RAW=str(tmp_path / "raw"),
    )
    error, flows = said.splitlines()[-2:]
    assert error == '"agent switch: ended before it answered (its words are on the console)"', said
    assert flows == "flows that ended: bulk"


@pytest.mark.lab
def test_an_agent_that_can_not_begin_is_named(tmp_path: Path) -> None:
    """The switch's program is none: the point is broken, with the agent's words and the kernel's."""
    (tmp_path / "program.o").write_text("no object")
    (tmp_path / "layout.json").write_text(testbed_object.path().with_name("layout.json").read_text())
    (point,) = load_plan(PLAN).points
    testbed = replace(LabTestbed.for_points([point]), program=tmp_path / "program.o")
    result = measure(testbed, point, tmp_path / "point", keep_captures=False)
    assert result.verdict == "broken"
    assert re.search(r"agent switch: .*program\.o: can't be opened as a BPF object", result.reason), result.reason


LONG = """
topology: {chain: {hops: HOPS}}
flows: {bulk: h1 -> hLAST}
tuples:
  - [hosts, capture, off]
  - [hosts, tcp_info, off]
  - [bulk, rate, 10mbit]
  - [bulk, duration, 100ms]
"""


@pytest.mark.lab
@pytest.mark.parametrize("hops", [pytest.param(9, marks=pytest.mark.long), 30])
def test_many_switches_have_files_enough(tmp_path: Path, hops: int) -> None:
    """All agents are one process, which may have more open than others."""
    result = measured(tmp_path / "point", LONG.replace("HOPS", str(hops)).replace("LAST", str(hops + 1)))
    assert result.verdict == "pass", result.reason
