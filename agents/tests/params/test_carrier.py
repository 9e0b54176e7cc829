# SPDX-License-Identifier: Apache-2.0
"""A driver that takes its link down to be set: the agent goes on when it is up again (met with e1000e: MTU, rings)."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.params import devices
from testctl_agent.params.devices import spread
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError
from testctl_agent.spec.types import Value


class Nic:
    """A device whose link goes down when it is set, and comes up after some looks."""

    def __init__(self, root: Path, looks: int | None) -> None:
        self.carrier = root / "class/net/eth0/carrier"
        self.carrier.parent.mkdir(parents=True)
        self.carrier.write_text("1\n")
        self.looks = looks
        self.slept = 0
        self.now = 0.0

    def apply(self, device: str, value: Value) -> None:
        self.carrier.write_text("0\n")

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.now += seconds
        if self.slept == self.looks:
            self.carrier.write_text("1\n")

    def monotonic(self) -> float:
        return self.now


def nic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int | None) -> tuple[Nic, Entity]:
    found = Nic(tmp_path, looks)
    monkeypatch.setattr(devices.time, "sleep", found.sleep)
    monkeypatch.setattr(devices.time, "monotonic", found.monotonic)
    return found, Entity("h1", "host", ("eth0",), sys=tmp_path)


def test_it_waits_for_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, host = nic(tmp_path, monkeypatch, 40)
    spread(host, "mtu", 1400, found.apply)
    assert found.slept == 40


def test_a_link_that_was_down_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, host = nic(tmp_path, monkeypatch, None)
    found.carrier.write_text("0\n")
    spread(host, "mtu", 1400, found.apply)
    found.carrier.unlink()
    spread(host, "mtu", 1400, lambda device, value: None)
    assert found.slept == 0


def test_a_link_that_stays_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, host = nic(tmp_path, monkeypatch, None)
    with pytest.raises(
        ApplyError, match=r"host h1, mtu: want 1400 on eth0; its link was up, and is not up again within"
    ):
        spread(host, "mtu", 1400, found.apply)
