# SPDX-License-Identifier: Apache-2.0
"""Parameters of NICs: messages as kernels sent them, and real devices.  root_nic.py is what runs as root.

The recorded replies are of a little-endian machine: a virtio NIC, a veth and a tap of Linux 6.18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testctl_agent.network import ethtool, ethtool_netlink
from testctl_agent.network import netlink as nl
from testctl_agent.network.ethtool_netlink import CHANNELS, COALESCE, PAUSE, RINGS, Feature, Group
from testctl_agent.params import registry
from testctl_agent.params.entity import Entity
from testctl_agent.params.host import nic as settings
from testctl_agent.params.host import queues
from testctl_agent.spec.errors import ApplyError, TestbedError

VIRTIO_RINGS = bytes.fromhex(
    "10010000180001800800010004000000090002006574683000000000080002000001000008000600000100000800050000010000"
    "080009000001000005000d000000000005000e0000000000"
)
VIRTIO_CHANNELS = bytes.fromhex(
    "1201000018000180080001000400000009000200657468300000000008000500010000000800090001000000"
)
VIRTIO_COALESCE = bytes.fromhex(
    "14010000180001800800010004000000090002006574683000000000080002000000000008000300010000000800060000000000"
    "080007000100000005000b0000000000"
)
VETH_CHANNELS = bytes.fromhex(
    "1201000014000180080001000300000007000200763000000800020004000000080006000400000008000300040000000800070004000000"
)
TAP_COALESCE = bytes.fromhex("1401000014000180080001000400000007000200743000000800030000000000")
GROUPS = (RINGS, CHANNELS, COALESCE, PAUSE)


@pytest.mark.parametrize(
    ("group", "reply", "found"),
    [
        (RINGS, VIRTIO_RINGS, {"rx_max": 256, "tx_max": 256, "rx": 256, "tx": 256}),
        (CHANNELS, VIRTIO_CHANNELS, {"combined_max": 1, "combined": 1}),
        (COALESCE, VIRTIO_COALESCE, {"rx_usecs": 0, "rx_frames": 1, "tx_usecs": 0, "tx_frames": 1, "adaptive_rx": 0}),
        (CHANNELS, VETH_CHANNELS, {"rx_max": 4, "tx_max": 4, "rx": 4, "tx": 4}),
        (COALESCE, TAP_COALESCE, {"rx_frames": 0}),
    ],
)
def test_recorded_replies(group: Group, reply: bytes, found: Mapping[str, int]) -> None:
    assert ethtool_netlink.decode(group, reply) == found


def test_a_request_is_made_of_the_same_attributes_as_the_reply() -> None:
    assert ethtool_netlink.encode(RINGS, {"rx": 256, "tx": 256}) == VIRTIO_RINGS[36:44] + VIRTIO_RINGS[52:60]
    assert ethtool_netlink.encode(COALESCE, {"adaptive_rx": 0}) == VIRTIO_COALESCE[-8:]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: str(group.name))
@given(data=st.data())
def test_what_is_encoded_is_decoded(group: Group, data: st.DataObject) -> None:
    fields = st.fixed_dictionaries(
        {}, optional={name: st.integers(0, 256**size - 1) for name, (_, size) in group.fields.items()}
    )
    values = data.draw(fields)
    assert ethtool_netlink.decode(group, bytes(4) + ethtool_netlink.encode(group, values)) == values


@given(st.binary(max_size=80), st.sampled_from(GROUPS))
def test_no_reply_breaks_the_decoder(reply: bytes, group: Group) -> None:
    assert set(ethtool_netlink.decode(group, reply)) <= set(group.fields)


def test_features_by_name() -> None:
    def bits(**named: bool) -> bytes:
        made = [
            nl.attr(1, nl.text(2, name.replace("_", "-")) + (nl.attr(3, b"") if on else b""))
            for name, on in named.items()
        ]
        return nl.attr(3, b"".join(made))

    flag = nl.attr(1, b"")
    reply = bytes(4) + nl.attr(2, flag + bits(rx_lro=True, rx_gro=True)) + nl.attr(4, flag + bits(rx_gro=True))
    reply += nl.attr(5, flag + bits(tx_lockless=True, rx_lro=True))
    assert ethtool_netlink.decode_features(reply) == {
        "rx-lro": Feature(False, False),
        "rx-gro": Feature(True, True),
        "tx-lockless": Feature(False, False),
    }


def test_units_and_ranges() -> None:
    specs = registry.specs()["host"]
    kind = specs["coalesce_rx"].type
    assert kind.parse("20us") == 20_000
    with pytest.raises(ValueError, match="in steps of 1us; got '1500ns'"):
        kind.parse("1500ns")
    with pytest.raises(ValueError, match="want a whole number from 1 to 1048576 packets; got 0"):
        specs["ring_rx"].type.parse(0)


@pytest.fixture
def nic(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A device with rings and coalescing that keeps the values it is set to, up to its limits."""
    state = {"rx": 512, "tx": 512, "rx_max": 4096, "rx_usecs": 50}

    def put(device: str, group: Group, values: Mapping[str, int]) -> None:
        if values.get("rx", 0) > state["rx_max"]:
            raise TestbedError("Invalid argument: requested ring size exceeds maximum; got rx 512 (at most 4096)")
        state.update(values)

    monkeypatch.setattr(ethtool_netlink, "get", lambda device, group: dict(state) if group in (RINGS, COALESCE) else {})
    monkeypatch.setattr(ethtool_netlink, "put", put)
    monkeypatch.setattr(ethtool, "driver", lambda device: "ixgbe")
    return state


HOST = Entity("h1", "host", ("eth1",))


def test_a_ring_is_set_and_restored(nic: dict[str, int]) -> None:
    before = settings.read(HOST, "ring_rx")
    settings.apply(HOST, "ring_rx", 2048)
    assert (before, nic["rx"], nic["tx"], settings.read(HOST, "ring_rx")) == (512, 2048, 512, 2048)
    settings.apply(HOST, "ring_rx", before)
    assert nic["rx"] == 512


def test_coalescing_is_in_microseconds(nic: dict[str, int]) -> None:
    assert settings.read(HOST, "coalesce_rx") == 50_000
    settings.apply(HOST, "coalesce_rx", 20_000)
    assert nic["rx_usecs"] == 20


def test_a_refusal_says_wanted_and_got_in_the_kernels_words(nic: dict[str, int]) -> None:
    with pytest.raises(
        ApplyError,
        match=r"host h1, ring_rx: want 9000 on eth1; Invalid argument: requested ring size exceeds maximum; "
        r"got rx 512 \(at most 4096\)",
    ):
        settings.apply(HOST, "ring_rx", 9000)


def test_what_a_device_has_not(nic: dict[str, int]) -> None:
    assert settings.unavailable(HOST, "ring_rx") == ""
    assert settings.unavailable(HOST, "pause_rx") == "device eth1 (ixgbe) has no pause frames"
    assert queues.unavailable(HOST, "queues") == "device eth1 (ixgbe) has no queues that can be set"
    assert (
        settings.unavailable(HOST, "coalesce_adaptive_rx") == "device eth1 (ixgbe) has no adaptive receive coalescing"
    )
    assert settings.unavailable(Entity("h1", "host"), "ring_rx") == "it has no network device"


def test_queues_that_differ_are_restored_each() -> None:
    separate, combined = {"rx": 2, "tx": 4, "rx_max": 8, "tx_max": 8}, {"combined": 3, "combined_max": 8}
    before = queues.value_of(separate)
    assert before == "rx:2,tx:4"
    assert queues.channels_for(separate, before) == {"rx": 2, "tx": 4}
    assert queues.channels_for(separate, 8) == {"rx": 8, "tx": 8}
    assert queues.value_of(combined) == 3
    assert queues.channels_for(combined, 8) == {"combined": 8}
    assert queues.value_of({}) is None


def test_what_a_nic_resets_is_set_after_what_resets_it() -> None:
    specs = registry.specs()["host"]
    for name in ("ring_rx", "ring_tx", "coalesce_rx", "coalesce_tx"):
        assert "queues" in specs[name].after
    for name in (after for spec in specs.values() for after in spec.after):
        assert name in specs, f"{name} is no parameter of a host"


@pytest.mark.root
def test_real_devices(in_namespace: Callable[..., str]) -> None:
    assert in_namespace(Path(__file__).with_name("root_nic.py")).endswith("all is as before\n")
