# SPDX-License-Identifier: Apache-2.0
"""Runs as root in a namespace of its own: queues of a veth and coalescing of a tap, through the engine.

Started under `unshare --net`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from testctl_agent.engine.apply import Engine, Setting
from testctl_agent.engine.journal import Journal
from testctl_agent.network import ethtool_netlink
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.spec.errors import ApplyError, TestbedError

from agents.tests.own_host import run

VETH, TAP = Entity("alpha", "host", ("veth0",)), Entity("beta", "host", ("tap0",))


def engine(where: Path) -> Engine:
    return Engine([VETH, TAP], registry.module, Journal(where / "journal.jsonl"))


def check_apply_and_restore(where: Path) -> None:
    both = engine(where)
    before, after = both.apply([Setting("alpha", "queues", 2), Setting("beta", "coalesce_rx_frames", 16)])
    assert [setting.value for setting in before] == [4, 0]
    assert [setting.value for setting in after] == [2, 16]
    assert ethtool_netlink.get("veth0", ethtool_netlink.CHANNELS)["rx"] == 2
    engine(where).restore()  # another engine: the one that applied has crashed
    assert ethtool_netlink.get("veth0", ethtool_netlink.CHANNELS)["rx"] == 4
    assert ethtool_netlink.get("tap0", ethtool_netlink.COALESCE) == {"rx_frames": 0}


def check_queues_that_differ(where: Path) -> None:
    ethtool_netlink.put("veth0", ethtool_netlink.CHANNELS, {"rx": 4, "tx": 3})
    both = engine(where)
    before, _ = both.apply([Setting("alpha", "queues", 1)])
    assert before[0].value == "rx:4,tx:3"
    both.restore()
    assert registry.module("host", "queues").read(VETH, "queues") == "rx:4,tx:3"
    ethtool_netlink.put("veth0", ethtool_netlink.CHANNELS, {"rx": 4, "tx": 4})


def check_refusals(where: Path) -> None:
    with pytest.raises(
        ApplyError,
        match=r"host alpha, queues: want 5 on veth0; Invalid argument: .*; got rx 4 \(at most 4\), tx 4 \(at most 4\)",
    ) as refused:
        engine(where).apply([Setting("alpha", "queues", 5)])
    print(refused.value)
    with pytest.raises(ApplyError, match="host beta, coalesce_rx_frames: want 7000; read back 64"):
        engine(where).apply([Setting("beta", "coalesce_rx_frames", 7000)])
    with pytest.raises(ApplyError, match=r"ring_rx: can't be set to 64: device veth0 \(veth\) has no rings"):
        engine(where).apply([Setting("alpha", "ring_rx", 64)])
    with pytest.raises(TestbedError, match="rx-lro stays off"):
        ethtool_netlink.set_features("veth0", {"rx-lro": True})
    with pytest.raises(TestbedError, match="device gone: not in this network namespace"):
        ethtool_netlink.get("gone", ethtool_netlink.RINGS)


def check_needs() -> None:
    wanted = {
        "ring_rx": "device veth0 (veth) has no rings",
        "coalesce_tx": "device veth0 (veth) has no interrupt coalescing",
        "pause_rx": "device veth0 (veth) has no pause frames",
        "lro": "device veth0 (veth) has no large receive offload that can be switched",
        "queues": "",
    }
    assert {name: registry.module("host", name).unavailable(VETH, name) for name in wanted} == wanted
    assert registry.module("host", "coalesce_rx").unavailable(TAP, "coalesce_rx") == (
        "device tap0 (tun) has no receive coalescing by time"
    )


def main() -> None:
    run("ip link add veth0 numrxqueues 4 numtxqueues 4 type veth peer name veth1 numrxqueues 4 numtxqueues 4")
    run("ip tuntap add tap0 mode tap")
    with tempfile.TemporaryDirectory() as name:
        check_apply_and_restore(Path(name))
        check_queues_that_differ(Path(name))
        check_refusals(Path(name))
        assert not list(Path(name).iterdir())
    check_needs()
    ethtool_netlink.set_features("veth0", {"rx-gro": True})
    assert ethtool_netlink.features("veth0")["rx-gro"].on
    print("all is as before")


if __name__ == "__main__":
    main()
