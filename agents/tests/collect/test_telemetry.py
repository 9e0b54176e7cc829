# SPDX-License-Identifier: Apache-2.0
"""The switch's times on the clock of everything else."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from testctl_agent.collect import telemetry
from testctl_agent.spec.errors import TestbedError
from testctl_agent.tasks.task import ProgramTask

OFFSET_NS = 1_700_000_000_123_456_789
STEP_NS = 256


@pytest.mark.parametrize("seed", range(5))
def test_the_offset_is_exact_though_others_read_the_clock_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the lab: a reading moves the clock by a step, and now and then others read it in between."""
    chance = random.Random(seed)
    now = 10**9

    def reading() -> int:
        nonlocal now
        now += STEP_NS * (1 + (chance.randrange(1, 20) if chance.random() < 0.3 else 0))
        return now

    monkeypatch.setattr(telemetry.time, "monotonic_ns", reading)
    monkeypatch.setattr(telemetry.time, "time_ns", lambda: reading() + OFFSET_NS)
    assert telemetry.clock_offset_ns() == OFFSET_NS


@pytest.mark.parametrize("program", ["sleep", "true"])
def test_the_switch_stops_recording_also_when_the_reader_has_ended(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = {"telemetry_on": 1, "telemetry_lost": 2, "telemetry": 3}
    values: dict[int, bytes] = {}
    open_maps: list[str] = []

    @contextmanager
    def attached(device: str) -> Iterator[Mapping[str, int]]:
        open_maps.append(device)
        yield maps
        open_maps.pop()

    monkeypatch.setattr(telemetry.ebpf_ports, "attached", attached)
    monkeypatch.setattr(telemetry.load, "write_array", values.__setitem__)
    monkeypatch.setattr(telemetry.load, "read_array", lambda number, size: struct.pack("=Q", 7))
    monkeypatch.setattr(telemetry.testbed_object, "record_layout", lambda: ([], 8))

    def reader(ring: int) -> ProgramTask:
        assert ring == maps["telemetry"]
        assert open_maps == ["a"]
        return ProgramTask("reader", [program, "60"], tmp_path, lambda code, said: {"bytes": 24 + len(said)})

    task = telemetry.Telemetry(("a", "b"), reader)
    assert not task.poll()
    assert task.files() == []
    task.stop()
    with pytest.raises(TestbedError, match=r"^telemetry: has not started$"):
        task.result()
    task.start()
    assert values == {maps["telemetry_on"]: struct.pack("=I", 1), maps["telemetry_lost"]: bytes(8)}
    if program == "true":
        assert task.wait(60)
    task.stop()
    assert values[maps["telemetry_on"]] == bytes(4)
    assert task.result() == {
        "layout": [], "records": 3, "ports": {"1": "a", "2": "b"}, "lost": 7, "clock_offset_ns": task.offset_ns,
    }  # fmt: skip
    monkeypatch.setattr(telemetry.testbed_object, "record_layout", lambda: ([], 9))
    with pytest.raises(TestbedError, match=r"^telemetry: want records of 9 bytes; got 6 bytes after the last of them$"):
        task.result()
    assert open_maps == []


@pytest.mark.root
def test_a_device_without_the_program() -> None:
    with pytest.raises(TestbedError, match="telemetry: device lo: the switch's program is not there"):
        telemetry.task({"devices": "lo"}, Path())
