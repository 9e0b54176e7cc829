# SPDX-License-Identifier: Apache-2.0
"""Ports that are NICs: promiscuous, without GRO and LRO; restored at the end, also by the next process after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.network import ethtool
from testctl_agent.spec.errors import TestbedError
from testctl_agent.switch import ebpf_ports, physical_ports
from testctl_agent.switch.physical_ports import PhysicalPorts


class Nics:
    """p1 and p2 are NICs, v1 is none; what is on and who is promiscuous."""

    def __init__(self) -> None:
        self.on = {("p1", ethtool.GRO), ("p2", ethtool.GRO), ("p2", ethtool.LRO), ("v1", ethtool.GRO)}
        self.promiscuous: set[str] = set()

    def feature(self, device: str, name: str) -> bool:
        return (device, name) in self.on

    def set_feature(self, device: str, name: str, on: bool) -> None:
        (self.on.add if on else self.on.discard)((device, name))

    def hold(self, device: str) -> Nics.Socket:
        self.promiscuous.add(device)
        return Nics.Socket(self, device)

    class Socket:
        def __init__(self, nics: Nics, device: str) -> None:
            self._nics, self._device = nics, device

        def close(self) -> None:
            self._nics.promiscuous.discard(self._device)


@pytest.fixture
def nics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nics:
    found = Nics()
    for device in ("p1", "p2", "v1"):
        (tmp_path / "sys/class/net" / device).mkdir(parents=True)
    for device in ("p1", "p2"):
        (tmp_path / "sys/class/net" / device / "device").mkdir()
    for queue, processors in (("rx-0", "2"), ("rx-1", "00000000,000000ff"), ("rx-2", "0")):
        (tmp_path / "sys/class/net/p1/queues" / queue).mkdir(parents=True)
        (tmp_path / "sys/class/net/p1/queues" / queue / "rps_cpus").write_text(f"{processors}\n", encoding="ascii")
    monkeypatch.setattr(physical_ports, "_promiscuous", found.hold)
    monkeypatch.setattr(physical_ports, "_can_change", lambda device, feature: True)
    monkeypatch.setattr(ethtool, "feature", found.feature)
    monkeypatch.setattr(ethtool, "set_feature", found.set_feature)
    return found


def opened(tmp_path: Path) -> PhysicalPorts:
    return PhysicalPorts(("p1", "p2", "v1"), tmp_path / "run", tmp_path)


def test_nics_alone_are_changed_and_restored(nics: Nics, tmp_path: Path) -> None:
    before = set(nics.on)
    ports = opened(tmp_path)
    assert nics.on == {("v1", ethtool.GRO)}
    assert nics.promiscuous == {"p1", "p2"}
    ports.close()
    assert (nics.on, nics.promiscuous) == (before, set())
    assert list((tmp_path / "run").iterdir()) == []


def test_what_a_killed_process_left_is_restored_by_the_next(nics: Nics, tmp_path: Path) -> None:
    before = set(nics.on)
    opened(tmp_path)
    opened(tmp_path).close()
    assert nics.on == before


def test_a_nic_whose_driver_began_anew_after_a_kill_does_not_merge(nics: Nics, tmp_path: Path) -> None:
    before = set(nics.on)
    opened(tmp_path)
    nics.on = set(before)
    ports = opened(tmp_path)
    assert nics.on == {("v1", ethtool.GRO)}
    ports.close()
    assert nics.on == before


@pytest.mark.parametrize("killed", [False, True])
def test_the_processors_of_queues_are_as_before(
    nics: Nics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """As the back end opens and closes a port, also where a process was killed between."""
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    files = physical_ports.rps_files("p1", tmp_path)
    before = [path.read_text(encoding="ascii").strip() for path in files]
    for left in range(1 + killed):
        if left:
            ebpf_ports.clear_steering("p1", tmp_path)
        ports = opened(tmp_path)
        assert ebpf_ports.steer_to_single_cpu("p1", 3, tmp_path) == ""
        assert {path.read_text(encoding="ascii") for path in files} == {"4"}
    ebpf_ports.clear_steering("p1", tmp_path)
    ports.close()
    assert [path.read_text(encoding="ascii").strip() for path in files] == before


def test_a_mask_is_written_as_the_kernel_reads_it(nics: Nics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bitmap_parse() (lib/bitmap-str.c) wants a comma before each 32 bits, or it is EOVERFLOW."""
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    for number, mask in ((32, "80000000"), (33, "1,00000000"), (72, "80,00000000,00000000"), (129, "1")):
        assert ebpf_ports.steer_to_single_cpu("p1", number, tmp_path) == ""
        assert {path.read_text() for path in physical_ports.rps_files("p1", tmp_path)} == {mask}


def test_nothing_stays_after_an_error(nics: Nics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(nics.on)

    def fails(device: str, name: str, on: bool) -> None:
        if device == "p2" and not on:
            raise TestbedError("device p2: busy")
        nics.set_feature(device, name, on)

    monkeypatch.setattr(ethtool, "set_feature", fails)
    with pytest.raises(TestbedError, match="busy"):
        opened(tmp_path)
    assert (nics.on, nics.promiscuous) == (before, set())
