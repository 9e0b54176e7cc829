# SPDX-License-Identifier: Apache-2.0
"""An agent that answers oddly breaks the point that it answers in, with its words, and no other."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from testctl.core.outcome import FlowOutcome, Outcome
from testctl.core.point import PointSpec
from testctl.execution.options import Options
from testctl.execution.point import measure
from testctl.execution.pool import LocalPool
from testctl.execution.run import run_plan
from testctl.metrics import instruments_agree
from testctl.packet_actions import check_fates
from testctl.plan import Point, load_plan
from testctl.records import load_raw
from testctl.records.counters import read_counters
from testctl.report import Progress
from testctl.testbeds.point_runner import result_of
from testctl.testbeds.point_spec import spec_of
from testctl.testbeds.ready import NotOurs
from testctl_agent.spec.errors import TestbedError, TestctlError
from testctl_agent.spec.untrusted import misfit
from testctl_agent.wire.results import COMPARED, PROBED, FlowEnd
from testctl_rack.clocks import clocks_of

from controller.tests.support.odd_json import mutated

FIXTURES = Path(__file__).parents[3] / "controller/tests/metrics/fixtures"
MUTATIONS = 150
DEEP = "[" * 100_000 + "]" * 100_000
CONNECTION = {"conn": 0, "bytes_sent": 5, "bytes_received": 0, "begin_ns": 10**18, "verified": True, "bad_offset": None,
              "error": None, "tcp_info": {"rtt_us": 3}}  # fmt: skip
STATE = {"source": "ptp", "synchronised": True, "offset_ns": 5, "error_ns": 9}
ANSWERS: dict[str, Any] = {
    "tgen": {"generator": "tgen", "role": "sender", "error": None, "connections": [CONNECTION] * 2},
    "iperf3": {
        "role": "sender", "connections": [CONNECTION],
        "iperf3": {"end": {"sum_sent": {"bytes": 5}, "sum_received": {"bytes": 7}, "streams": []}},
    },
    "trex": {"connections": [], "trex": {"connections": 9, "bytes_sent": 4}},
    "clock": {"offset_ns": 5, "error_run_ns": 7, "state": STATE},
    "probe": {"passes": True, "why": "", "largest_forward": 1500, "largest_backward": 1500},
    "telemetry": {
        "layout": [{"name": "x.arrival_ns", "offset": 0, "bytes": 8}], "records": 1, "lost": 0, "ports": {"1": "eth0"},
        "clock_offset_ns": 5,
    },
    "tcp_events": {"layout": 1, "records": 3, "lost": 0, "clock_offset_ns": 5},
    "capture": {"captured": 5, "received": 5, "dropped": 0},
    "counters": {"errors": []},
}  # fmt: skip
COUNTERS = {
    "snmp": {"Tcp.InSegs": 5},
    "device": {"eth0": {"carrier_changes": 1}},
    "qdisc": [{"device": "eth0", "kind": "fq", "handle": "1:", "parent": "root", "bytes": 5, "extra": {"drops": 1}}],
    "errors": [],
}


def checks(name: str, text: str, outcome: Outcome) -> None:
    """What the controller does with such a result."""
    found = result_of("alpha", text, name)
    if name == "clock" and not misfit(found, COMPARED):
        clocks_of("alpha", found, {"beta": [found, found]})
    elif name == "probe" and not misfit(found, PROBED):
        f"{found['passes']} {found['why']} {found['largest_forward']}"
    elif name in ("tgen", "iperf3", "trex"):
        outcome.flows = {"bulk": FlowOutcome(FlowEnd.from_json(found), FlowEnd.from_json(found))}
    else:
        outcome.collected = {"sender": {name: found}, "switch": {name: found}}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_result_fits_or_is_refused(name: str) -> None:
    records = load_raw(FIXTURES / "loss")
    draw = random.Random(name)
    refused = 0
    for _ in range(MUTATIONS):
        text = json.dumps(mutated(ANSWERS[name], draw))
        try:
            checks(name, text, records.outcome)
        except TestctlError:
            refused += 1
            continue
        assert all(isinstance(why, str) for why in instruments_agree(records))
        check_fates(records)
    assert 0 < refused < MUTATIONS
    checks(name, json.dumps(ANSWERS[name]), records.outcome)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "1", '"x"', "null", DEEP, '{"state":' * 100_000, '{"x": NaN}', '{"x": "\\ud800"}',
        '{"connections": 5}',
    ],
)  # fmt: skip
def test_a_result_that_is_no_result(text: str) -> None:
    with pytest.raises(TestbedError, match=r"alpha, bulk-client: .*want "):
        result_of("alpha, bulk-client", text, "tgen")


def test_counters_fit_or_are_refused(tmp_path: Path) -> None:
    draw = random.Random(7)
    refused = 0
    for number in range(MUTATIONS):
        for when in ("before", "after"):
            (tmp_path / f"counters_{when}.json").write_text(json.dumps(mutated(COUNTERS, draw)))
        if number == 0:
            (tmp_path / "counters_before.json").write_text(DEEP)
        try:
            assert set(read_counters(tmp_path)) == {"snmp", "device", "qdisc"}
        except TestctlError:
            refused += 1
    assert 0 < refused < MUTATIONS


class Odd:
    """A testbed whose agents answer oddly where they are asked for the first point."""

    def __init__(self, first: str, answer: Any) -> None:
        self.first, self.answer = first, answer

    def code_key(self, point: Point) -> str:
        return "odd"

    def run(self, point: Point, workdir: Path) -> tuple[PointSpec, Outcome]:
        if point.id != self.first:
            return spec_of(point), Outcome(skip="not of interest")
        if isinstance(self.answer, type):
            raise self.answer("from \x1b[31mwithin")
        return spec_of(point), self.answer


@pytest.mark.parametrize(
    "answer",
    [KeyError, RecursionError, MemoryError, UnicodeError, Outcome(drift=5), Outcome(entities=5),
     Outcome(flows={"bulk": 5})],
)  # fmt: skip
def test_the_other_points_are_run(tmp_path: Path, answer: Any) -> None:
    plan = load_plan("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, [cubic, reno]]]\n")
    bed = Odd(plan.points[0].id, answer)
    run = run_plan(plan, bed, Options(tmp_path, tmp_path / "run"), Progress(2, Console(quiet=True)), pool=Here())
    broken, other = (run.point(point.id) for point in plan.points)
    assert (broken.verdict, other.verdict) == ("broken", "skip")
    assert "a bug, or an agent's odd answer: " in broken.reason
    assert "\x1b" not in broken.reason
    assert "Traceback" in (broken.path / "traceback.txt").read_text()
    assert not (other.path / "traceback.txt").exists()


def test_a_run_whose_testbed_another_one_has_ends(tmp_path: Path) -> None:
    """With 3; no other point is broken one by one."""
    plan = load_plan("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, [cubic, reno]]]\n")
    bed = Odd(plan.points[0].id, NotOurs)
    with pytest.raises(NotOurs) as ended:
        run_plan(plan, bed, Options(tmp_path, tmp_path / "run"), Progress(2, Console(quiet=True)), pool=Here())
    assert ended.value.exit_code == 3


class Here(LocalPool):
    """Points one by one in this process."""

    def __init__(self) -> None:
        super().__init__(1)

    def work(self, testbed: Any, points: Iterator[Point], run: Path, keep_captures: bool) -> Any:
        from testctl.execution.point import run_one

        for point in points:
            yield point, *run_one(testbed, point, run, keep_captures)


def test_what_can_not_be_written_is_one_points_matter(tmp_path: Path) -> None:
    """An outcome that passed every check, and holds what no file can."""
    point = load_plan("topology: pair\nflows: {bulk: sender -> receiver}\ntuples: [[hosts, cc, cubic]]\n").points[0]
    result = measure(Odd(point.id, Outcome(skip="half a character: \ud800")), point, tmp_path / "work", False)
    from testctl.execution.point import keep

    (tmp_path / "run" / "points").mkdir(parents=True)
    kept = keep(tmp_path / "run", point, result)
    assert json.loads((kept / "verdict.json").read_text())["verdict"] == "broken"
    assert "UnicodeEncodeError" in (kept / "traceback.txt").read_text()
