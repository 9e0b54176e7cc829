# SPDX-License-Identifier: Apache-2.0
"""Runs as root in namespaces of its own: agents of one process, each of which sees its own network and its own /sys.

Started under `unshare --net --mount`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from testctl_agent.engine.factory import AgentConfig
from testctl_agent.engine.local import HereAgent
from testctl_agent.engine.service import Service
from testctl_agent.spec.errors import TestbedError, Unavailable
from testctl_agent.system.namespace import CLONE_NEWNET, Place, mount, private_mounts, unshare
from testctl_agent.wire import messages


def where() -> tuple[str, str]:
    return os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/mnt")


def place_of(device: str) -> Callable[[], None]:
    """Enters a fresh network namespace with one device, and the /sys of it."""

    def enter() -> None:
        unshare(CLONE_NEWNET)
        private_mounts()
        mount("sysfs", "/sys")
        for words in (f"link add {device} type veth peer name {device}x", f"link set {device} up"):
            subprocess.run(["ip", *words.split()], check=True)

    return enter


def config(name: str, device: str, folder: Path) -> AgentConfig:
    return AgentConfig(name, "host", {name: device}, folder / name, folder / f"{name}.journal", version="1.0+abc")


def mtu(name: str, value: int) -> messages.ApplyRequest:
    return messages.ApplyRequest(settings=[messages.Setting(entity=name, parameter="mtu", value=value)])


def main() -> None:
    folder, at_home = Path(tempfile.mkdtemp()), where()
    home = Place.here()
    agents = {
        name: HereAgent(config(name, device, folder), home, place_of(device))
        for name, device in (("alpha", "one"), ("beta", "two"))
    }
    assert where() == at_home
    assert len({os.fstat(agent.place.network).st_ino for agent in agents.values()}) == 2
    for name, value in (("alpha", 1400), ("beta", 1300)):
        reply = agents[name].call("Apply", mtu(name, value))
        assert [one.value for one in reply.before + reply.after] == [1500, value]
        assert where() == at_home
    for name, device, value in (("alpha", "one", 1400), ("beta", "two", 1300)):
        agents[name].place.go()
        assert Path(f"/sys/class/net/{device}/mtu").read_text(encoding="ascii") == f"{value}\n"
        assert sorted(os.listdir("/sys/class/net")) == sorted(["lo", device, f"{device}x"])
        home.go()
    with pytest.raises(TestbedError, match="host alpha, mtu"):
        agents["alpha"].call("Apply", mtu("alpha", 1))
    assert agents["beta"].call("Describe", messages.DescribeRequest(parameters=["mtu"])).name == "beta"
    refusals(agents["alpha"], at_home)
    for name in agents:
        agents[name].call("Restore", messages.RestoreRequest())
        assert not (folder / f"{name}.journal").exists()
    with pytest.raises(TestbedError, match=r"^agent gamma: no such place$"):
        HereAgent(config("gamma", "three", folder), home, no_place)
    assert where() == at_home
    print("all at home")


def no_place() -> None:
    unshare(CLONE_NEWNET)
    raise OSError("no such place")


def refusals(agent: HereAgent, at_home: tuple[str, str]) -> None:
    """Whatever a call ends with, this process is at home again, and the error is that of a process of its own."""

    def bug(self: Service, request: messages.AttestRequest) -> messages.Attestation:
        raise ZeroDivisionError("one over none")

    def lacks(self: Service, request: messages.AttestRequest) -> messages.Attestation:
        raise Unavailable("this kernel has no such thing")

    kept = Service.Attest
    for attest, error, text in (
        (bug, TestbedError, r"^Attest: ZeroDivisionError; the console says more$"),
        (lacks, Unavailable, r"^this kernel has no such thing$"),
    ):
        Service.Attest = attest  # type: ignore[assignment, method-assign]
        with pytest.raises(error, match=text):
            agent.call("Attest", messages.AttestRequest())
        assert where() == at_home
    Service.Attest = kept  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
