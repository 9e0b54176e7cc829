# SPDX-License-Identifier: Apache-2.0
"""How much memory a lab is given, by what its point has."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl.core.point import PointSpec
from testctl.lab import machine, memory
from testctl.lab.memory import RING_KIB
from testctl.plan import load_plan
from testctl.system.memory import free_mb
from testctl.testbeds.point_spec import port_list, spec_of
from testctl_agent.collect import capture
from testctl_agent.spec.errors import PlanError


def star(hosts: int, *tuples: str) -> PointSpec:
    flows = ", ".join(f"f{n}: h{n} -> h1" for n in range(2, hosts + 1))
    lines = [f"[f{n}, bytes, 64KiB]" for n in range(2, hosts + 1)] + list(tuples)
    text = f"topology: {{star: {{hosts: {hosts}}}}}\nflows: {{{flows}}}\ntuples: [{', '.join(lines)}]\n"
    return memory.with_rings(spec_of(load_plan(text.encode(), metrics={}).points[0]))


def rings(point: PointSpec) -> set[int]:
    return {c["capture"].get("ring_kib", RING_KIB) for c in point.collect.values() if "capture" in c}


def test_small_labs_are_as_they_were() -> None:
    """TCP's limits depend on the memory: what is no larger than the shipped plans' labs has the same."""
    assert RING_KIB == capture.RING_KIB
    for hosts in (2, 6, 16):
        assert memory.lab_mb(star(hosts)) == memory.MIN_MB
        assert rings(star(hosts)) == {RING_KIB}


@pytest.mark.parametrize(("hosts", "used_mb"), [(3, 244), (16, 831), (33, 1057)])
def test_more_than_was_measured(hosts: int, used_mb: int) -> None:
    """Used just before the traffic, on 6.12, everything at its default."""
    assert used_mb < memory.needed_mb(star(hosts)) < 2 * used_mb + 128


def test_the_traffic_begins_when_all_is_set_up() -> None:
    """As ever where there is little to set up; else whole seconds later."""
    for hosts in (2, 16, 33):
        assert machine.t0_ns(star(hosts)) == machine.T0_NS
    later_ns = machine.t0_ns(star(100)) - machine.T0_NS
    assert later_ns % 10**9 == 0
    assert 10 <= later_ns // 10**9 <= 20


def test_many_captures_share_their_rings() -> None:
    for hosts in (33, 100):
        (ring,) = rings(star(hosts))
        assert memory.RING_MIN_KIB <= ring < RING_KIB
        assert hosts * ring <= memory.RINGS_KIB
    assert rings(star(33, "[hosts, capture, off]")) == set()
    assert memory.needed_mb(star(33, "[hosts, capture, off]")) < memory.needed_mb(star(33)) / 2


def test_as_much_as_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.SET, "3000")
    assert memory.lab_mb(star(2)) == 3000
    for wrong in ("3G", "0", "-1", "99999999"):
        monkeypatch.setenv(memory.SET, wrong)
        with pytest.raises(PlanError, match=f"want a lab's memory in MB, such as 2048; got '{wrong}'"):
            memory.lab_mb(star(2))


def test_whether_labs_fit_into_the_memory(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  8000000 kB\nMemAvailable:   4194304 kB\n")
    assert free_mb(tmp_path / "meminfo") == 4096
    assert memory.shortage(1024, 4, 4096) == ""
    assert memory.shortage(1024, 5, 4096) == (
        "5 labs at once need about 5 x 1024 MB of memory, and this machine has 4096 MB free: want --jobs 4"
    )
    assert memory.shortage(5000, 1, 4096) == "a lab needs about 5000 MB of memory, and this machine has 4096 MB free"


@pytest.mark.parametrize(
    ("ports", "text"),
    [([5001], "5001"), ([5002, 5001], "5001,5002"), (range(5001, 5100), "5001-5099"), ([1, 3, 4, 5], "1,3-5")],
)
def test_ports_of_a_hundred_flows_are_few_words(ports: list[int], text: str) -> None:
    assert port_list(ports) == text
