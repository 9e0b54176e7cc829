# SPDX-License-Identifier: Apache-2.0
"""Parameters of devices: one value for all, each device restored to its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from testctl_agent.network import ethtool, ethtool_netlink, netlink, qdisc
from testctl_agent.network.routes import RTMSG, parse
from testctl_agent.params.entity import Entity
from testctl_agent.params.host import gro_flush, initcwnd, jitter, tso
from testctl_agent.params.port import link
from testctl_agent.params.switch import backend, mtu
from testctl_agent.params.types import OrNone
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.spec.types import Int, Value

from agents.tests.switch.fake import FakeBackend


@pytest.fixture
def host(tmp_path: Path) -> Entity:
    for device in ("eth0", "eth1"):
        where = tmp_path / "class/net" / device
        where.mkdir(parents=True)
        (where / "gro_flush_timeout").write_text("0\n")
        (where / "napi_defer_hard_irqs").write_text("0\n")
    return Entity("h1", "host", ("eth0", "eth1"), sys=tmp_path)


def shown(host: Entity) -> list[str]:
    files = sorted((host.sys / "class/net").glob("*/*"))
    return [path.read_text().strip() for path in files]


def test_gro_flush_sets_both_files(host: Entity) -> None:
    assert gro_flush.read(host, "gro_flush") == 0
    gro_flush.apply(host, "gro_flush", 20_000)
    assert shown(host) == ["20000", "1"] * 2
    assert gro_flush.read(host, "gro_flush") == 20_000
    gro_flush.apply(host, "gro_flush", 0)
    assert shown(host) == ["0", "0"] * 2


def test_gro_flush_restores_what_does_not_agree(host: Entity) -> None:
    (host.sys / "class/net/eth1/napi_defer_hard_irqs").write_text("2\n")
    (host.sys / "class/net/eth0/gro_flush_timeout").write_text("50\n")
    before, files = gro_flush.read(host, "gro_flush"), shown(host)
    assert before == "eth0=50ns,deferred:0 eth1=0ns,deferred:2"
    gro_flush.apply(host, "gro_flush", 7)
    gro_flush.apply(host, "gro_flush", before)
    assert shown(host) == files
    assert gro_flush.read(host, "gro_flush") == before


def test_gro_flush_needs_its_files(host: Entity) -> None:
    assert gro_flush.unavailable(host, "gro_flush") == ""
    assert "class/net/eth9" in gro_flush.unavailable(Entity("h1", "host", ("eth9",), sys=host.sys), "gro_flush")
    assert gro_flush.unavailable(Entity("h1", "host"), "gro_flush") == "it has no network device"


def test_jitters_settings_are_written_together_and_each_host_has_its_stream(tmp_path: Path) -> None:
    """The kernel's file takes the words that it shows."""
    file = tmp_path / jitter.FILE
    file.parent.mkdir(parents=True)
    file.touch()
    streams = set()
    for name in ("h1", "h2"):
        file.write_text("")
        one = Entity(name, "host", ("eth0",), sys=tmp_path)
        assert jitter.unavailable(one, "jitter") == ""
        assert [jitter.read(one, spec.name) for spec in jitter.SPECS] == [0, "exponential", 1, 0, 1000]
        jitter.apply(one, "jitter", 5_000)
        jitter.apply(one, "jitter_distribution", "uniform")
        jitter.apply(one, "jitter_seed", 7)
        *words, stream = file.read_text().split()
        assert words == ["eth0", "uniform", "5000", "0", "1000", "7"]
        assert [jitter.read(one, spec.name) for spec in jitter.SPECS] == [5_000, "uniform", 7, 0, 1000]
        streams.add(stream)
    assert len(streams) == 2


def test_jitter_is_a_labs(tmp_path: Path) -> None:
    said = jitter.unavailable(Entity("h1", "host", ("eth0",), sys=tmp_path), "jitter_tail")
    assert said == "only a lab's kernel models it; other hosts have what they have"


def test_mtus_that_differ_are_restored_each(monkeypatch: pytest.MonkeyPatch) -> None:
    mtus = {"a": 1500, "b": 9000}
    monkeypatch.setattr(netlink, "mtu", mtus.__getitem__)
    monkeypatch.setattr(netlink, "set_mtu", mtus.__setitem__)
    monkeypatch.setattr(qdisc, "qdiscs", lambda device: [])
    switch = Entity("s1", "switch", ("a", "b"))
    before = mtu.read(switch, "mtu")
    assert before == "a=1500 b=9000"
    mtu.apply(switch, "mtu", 4000)
    assert mtu.read(switch, "mtu") == 4000
    mtu.apply(switch, "mtu", before)
    assert mtus == {"a": 1500, "b": 9000}


def test_a_refusal_names_entity_device_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(device: str, value: int) -> None:
        raise TestbedError("Invalid argument: mtu greater than device maximum")

    monkeypatch.setattr(netlink, "mtu", lambda device: 1500)
    monkeypatch.setattr(netlink, "set_mtu", refuse)
    with pytest.raises(ApplyError, match=r"switch s1, mtu: want 9000 on a; Invalid argument: mtu greater"):
        mtu.apply(Entity("s1", "switch", ("a",)), "mtu", 9000)


@pytest.mark.parametrize(
    ("driver", "value", "features"),
    [
        ("veth", True, {"tso": False, "gso": True}),
        ("veth", False, {"tso": False, "gso": False}),
        ("veth", "whole", {"tso": True, "gso": True}),
        ("ixgbe", True, {"tso": True, "gso": True}),
        ("ixgbe", False, {"tso": False, "gso": True}),
    ],
)
def test_tso(monkeypatch: pytest.MonkeyPatch, driver: str, value: Value, features: dict[str, bool]) -> None:
    state = {"tso": True, "gso": True}
    monkeypatch.setattr(ethtool, "driver", lambda device: driver)
    nic(monkeypatch, state)
    host = Entity("h1", "host", ("eth0",))
    before = tso.read(host, "tso")
    tso.apply(host, "tso", value)
    assert state == features
    assert tso.read(host, "tso") == value
    tso.apply(host, "tso", before)
    assert state == {"tso": True, "gso": True}


def nic(monkeypatch: pytest.MonkeyPatch, state: dict[str, bool]) -> None:
    """A device whose offloads are in a dict; "tso" is that of IPv4, and of IPv6 unless "tso6" is there."""
    names = {"tx-tcp-segmentation": "tso", "tx-tcp6-segmentation": "tso6" if "tso6" in state else "tso"}
    monkeypatch.setattr(ethtool, "feature", lambda device, name: state[{ethtool.GSO: "gso"}[name]])
    monkeypatch.setattr(ethtool, "set_feature", lambda device, name, on: state.update({{ethtool.GSO: "gso"}[name]: on}))
    monkeypatch.setattr(ethtool, "segmentation", lambda device: {name: state[key] for name, key in names.items()})
    monkeypatch.setattr(
        ethtool_netlink, "set_features", lambda device, wanted: state.update({names[n]: on for n, on in wanted.items()})
    )


@pytest.mark.parametrize("driver", ["veth", "ixgbe"])
@pytest.mark.parametrize("tso4", [True, False])
@pytest.mark.parametrize("tso6", [True, False])
@pytest.mark.parametrize("gso", [True, False])
def test_tso_of_any_state_is_brought_back(
    monkeypatch: pytest.MonkeyPatch, driver: str, tso4: bool, tso6: bool, gso: bool
) -> None:
    before = {"tso": tso4, "tso6": tso6, "gso": gso}
    for wanted in (True, False):
        state = dict(before)
        monkeypatch.setattr(ethtool, "driver", lambda device: driver)
        nic(monkeypatch, state)
        host = Entity("h1", "host", ("eth0",))
        was = tso.read(host, "tso")
        tso.apply(host, "tso", wanted)
        assert tso.read(host, "tso") == wanted
        tso.apply(host, "tso", was)
        assert state == before
        assert tso.read(host, "tso") == was


def test_initcwnd_keeps_all_else_of_a_route() -> None:
    dumped = RTMSG.pack(2, 16, 0, 0, 254, 2, 253, 1, 0x10)
    destination, source = netlink.attr(1, b"\x0a\0\0\0"), netlink.attr(7, b"\x0a\0\0\1")
    window, mss = netlink.u32(11, 20), netlink.u32(8, 1400)
    route = parse(dumped + destination + source + netlink.attr(8, mss))
    assert initcwnd.value_of(route) == "none"
    set_to = dumped[:8] + bytes(4) + destination + source + netlink.attr(8, mss + window)
    assert initcwnd.with_initcwnd(route, 20) == set_to
    again = parse(dumped + set_to[12:])
    assert initcwnd.value_of(again) == 20
    assert initcwnd.with_initcwnd(again, "none") == dumped[:8] + bytes(4) + destination + source + netlink.attr(8, mss)


def test_initcwnd_of_a_route_with_a_nexthop_object() -> None:
    """The kernel shows what the object holds, refuses it in a request, and keeps old metrics when it gets none."""
    dumped = RTMSG.pack(2, 16, 0, 0, 254, 3, 0, 1, 0x4)
    destination, nexthop = netlink.attr(1, b"\x0a\x07\0\0"), netlink.u32(30, 5)
    shown = netlink.u32(4, 3) + netlink.attr(5, b"\x0a\0\0\2")
    route = parse(dumped + destination + shown + nexthop)
    for value, metric in ((20, 20), ("none", 0)):
        kept = destination + nexthop + netlink.attr(8, netlink.u32(11, metric))
        assert initcwnd.with_initcwnd(route, value) == dumped[:8] + bytes(4) + kept


def test_a_number_or_none() -> None:
    kind = OrNone(Int(1, 1000, "segments"))
    assert [kind.parse(raw) for raw in ("none", None, 20, "20")] == ["none", "none", 20, 20]
    with pytest.raises(ValueError, match="want a whole number from 1 to 1000 segments, or none; got 0"):
        kind.parse(0)


def test_port_parameters_go_to_the_back_end() -> None:
    port = Entity("s1:r", "port", ("r",), backend=FakeBackend(("r",)))
    assert link.read(port, "buffer") == "none"
    link.apply(port, "buffer", 3000)
    assert link.read(port, "buffer") == 3000
    assert link.unavailable(port, "buffer") == ""
    bare = Entity("s1:r", "port", ("r",))
    assert link.unavailable(bare, "buffer") == "its agent was started without a back end"
    with pytest.raises(ApplyError, match="port s1:r, buffer: its agent was started without a back end"):
        link.read(bare, "buffer")


def test_the_back_end_can_only_be_confirmed() -> None:
    switch = Entity("s1", "switch", ("r",), backend=FakeBackend(("r",)))
    backend.apply(switch, "backend", "fake")
    with pytest.raises(ApplyError, match="switch s1, backend: want netem; got fake"):
        backend.apply(switch, "backend", "netem")
