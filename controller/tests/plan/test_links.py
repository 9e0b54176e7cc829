# SPDX-License-Identifier: Apache-2.0
"""Links that change in a plan: schedules, traces that it names by their paths, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.plan import Plan, load_plan
from testctl.plan.cost import cost_ms
from testctl.plan.unlimited import unlimited_flows
from testctl.testbeds.point_runner import constant
from testctl.testbeds.point_spec import spec_of
from testctl_agent.spec.errors import PlanError

HEAD = "topology: pair\nflows: {bulk: sender -> receiver}\ntuples:\n"
PORT = "port switch:receiver, "


def written(folder: Path, tuples: str, **traces: bytes) -> Path:
    for name, data in traces.items():
        (folder / f"{name}.trace").write_bytes(data)
    (folder / "p.yaml").write_text(f"{HEAD}{tuples}  - [bulk, duration, 4s]\n")
    return folder / "p.yaml"


def of_trace(folder: Path, data: bytes) -> Plan:
    return load_plan(written(folder, "  - [switch:receiver, rate, ./a.trace]\n", a=data), metrics={})


def test_a_schedule_is_kept_in_one_way_of_writing(tmp_path: Path) -> None:
    text = (
        "  - [switch:receiver, rate, '100mbit;  2s 20mbit;2500ms 0bit; 3s 20mbit']\n"
        "  - [switch, delay, 10ms; 1s 30ms]\n  - [switch:receiver, down, '300ms-400ms;1s-1100ms']\n"
    )
    plan = load_plan(written(tmp_path, text), metrics={})
    (point,) = plan.points
    assert point.settings["switch:receiver"] == {
        "rate": "100mbit; 2s 20mbit; 2.5s 0bit; 3s 20mbit",
        "delay": "10ms; 1s 30ms",
        "down": "300ms-400ms; 1s-1.1s",
    }
    assert unlimited_flows(plan) == []
    spec = spec_of(point)
    assert spec.collect["switch"]["link_origin"] == {"devices": "sender,receiver", "at_t0": True}
    assert constant(spec) == []
    constant_rate = load_plan(written(tmp_path, "  - [switch:receiver, rate, 52.5mbit]\n"), metrics={}).points[0]
    assert cost_ms(point) == cost_ms(constant_rate), "beside what the link was down"
    assert "link_origin" not in spec_of(constant_rate).collect["switch"]


def test_a_back_end_without_links_that_change_skips_the_point(tmp_path: Path) -> None:
    text = "  - [switch, backend, netem]\n  - [switch:receiver, delay, 10ms; 1s 30ms]\n  - [switch, rate, 10mbit]\n"
    (point,) = load_plan(written(tmp_path, text), metrics={}).points
    spec = spec_of(point)
    assert constant(spec) == [("switch:receiver", "delay")]
    assert "link_origin" not in spec.collect["switch"]


def test_a_trace_is_part_of_what_determines_a_point(tmp_path: Path) -> None:
    ids = [of_trace(tmp_path, data).points[0].id for data in (b"1\n2\n", b"1\n3\n", b"1\r\n2\r\n", b"1\n2")]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2] == ids[3]


def test_a_run_uses_the_trace_that_it_kept(tmp_path: Path) -> None:
    plan = of_trace(tmp_path, b"1\n2\n")
    again = load_plan(plan.text.encode(), metrics={}, traces=plan.traces)
    assert again.points == plan.points
    with pytest.raises(PlanError, match=r"want the file that the run used; it has none named './a\.trace'"):
        load_plan(plan.text.encode(), metrics={}, traces={})


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", r"\./a\.trace, line 1: want a trace in Mahimahi's format: .*; got an empty file"),
        (b"1\n5\n4\n", r"\./a\.trace, line 3: want a trace .*; got 4 after 5"),
        (b"time,rate\n1,2\n", r"\./a\.trace, line 1: want a trace .*; got 'time,rate'"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(PlanError, match=rf"p\.yaml:4:29: {PORT}rate: {words}"):
        of_trace(tmp_path, data)


@pytest.mark.parametrize(
    ("param", "value", "words"),
    [
        ("rate", "./absent.trace", r"\./absent\.trace: can't be read: No such file"),
        ("rate", "../a.trace", r"want the path of a file below the plan's directory, .*; got '\.\./a\.trace'"),
        ("rate", "/etc/passwd", "want the path of a file below the plan's directory"),
        ("rate", "10mbit; 2s", "want a time and a value in each step after the first; got '2s'"),
        ("rate", "10mbit; 2s 1mbit; 1s 2mbit", "want steps in the order of their times; got 1s after 2s"),
        ("rate", "10mbit; 2s 1bit", "want from 8bit to 10000gbit; got '1bit'"),
        ("rate", "10mbit; 2 1mbit", "want a time with its unit"),
        ("delay", "10ms; 2s none", "want a time with its unit, .*; got 'none'"),
        (
            "largest",
            "1400B ICMP",
            "want .*, or none; or a schedule such as 'none; 2s 1400B icmp'; behind a size may stand icmp",
        ),
        ("largest", "none icmp", "want a size before icmp; got 'none icmp', in 'none icmp'"),
        ("largest", "60B icmp", "want from 68B to 65.535kB; got '60B', in '60B icmp'"),
        ("largest", "none; 2s 1400B icmp; 1s none", "want steps in the order of their times; got 1s after 2s, in"),
        ("rate", "10mbit icmp", "want a rate such as .*; got '10mbit icmp'"),
        ("down", "2s", "want pairs of times such as 2s-3s, or none; got '2s'"),
        ("down", "2s-3s; 2500ms-4s", "want times in their order; got '2500ms-4s'"),
    ],
)
def test_bad_values_are_refused(tmp_path: Path, param: str, value: str, words: str) -> None:
    with pytest.raises(PlanError, match=rf"p\.yaml:4:\d+: {PORT}{param}: {words}"):
        load_plan(written(tmp_path, f"  - [switch:receiver, {param}, '{value}']\n"), metrics={})


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("1400B", 1400),
        ("1400B icmp", "1.4kB icmp"),
        ("none;  2s 1448B   icmp;4s none", "none; 2s 1.448kB icmp; 4s none"),
        ("1400B; 2s 1400B icmp", "1.4kB; 2s 1.4kB icmp"),
    ],
)
def test_sizes_with_and_without_icmp_are_kept_in_one_way_of_writing(tmp_path: Path, value: str, kept: object) -> None:
    text = f"  - [switch:receiver, largest, '{value}']\n"
    (point,) = load_plan(written(tmp_path, text), metrics={}).points
    assert point.settings["switch:receiver"]["largest"] == kept
    assert "link_origin" in spec_of(point).collect["switch"]
