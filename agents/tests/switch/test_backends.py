# SPDX-License-Identifier: Apache-2.0
"""Switch back ends: found by name, honest about what they can't do."""

from __future__ import annotations

import pytest
from testctl_agent.network import netlink, qdisc
from testctl_agent.params import registry
from testctl_agent.params.words import BackendWord
from testctl_agent.spec.errors import ApplyError, TestbedError
from testctl_agent.switch import backend, netem
from testctl_agent.switch.netem import Model, packet_limit

from agents.tests.switch.fake import FakeBackend


def test_are_found_by_the_name_of_their_file() -> None:
    assert backend.own() == ("ebpf", "fake", "netem")
    assert registry.specs()["switch"]["backend"].type == BackendWord(("ebpf", "netem"))
    assert backend.load("netem", {"switch:a": "a"}, {}).name == "netem"
    with pytest.raises(TestbedError, match=r"switch back end: want one of .*ebpf, fake, netem.*; got 'tofu'$"):
        backend.load("tofu", {}, {})


@pytest.mark.parametrize(
    ("model", "mtu", "packets"),
    [
        (Model(), 1500, 1_000_000),
        (Model(rate=10**9), 1500, 1_000_000),
        (Model(buffer=10_000), 1500, 1_000_000),
        (Model(rate=10**9, buffer=15_140), 1500, 11),
        (Model(rate=10**9, buffer=15_141), 1500, 12),
        (Model(rate=10**9, delay=10**6, buffer=15_140), 1500, 94),
        (Model(rate=10**9, delay=10**6, buffer=15_140), 9000, 17),
    ],
)
def test_a_buffer_in_packets(model: Model, mtu: int, packets: int) -> None:
    assert packet_limit(model, mtu) == packets


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> dict[str, qdisc.Entry]:
    """A kernel that has netem, as a table of root qdiscs."""
    roots: dict[str, qdisc.Entry] = {}

    def put(device: str, kind: str, handle: int, parent: int, options: bytes = b"") -> None:
        roots[device] = qdisc.Entry(1, handle, parent, 0, kind, options, {}, {})

    monkeypatch.setattr(qdisc, "root", roots.get)
    monkeypatch.setattr(qdisc, "put_qdisc", put)
    monkeypatch.setattr(qdisc, "delete_qdisc", lambda device, handle, parent: roots.pop(device))
    monkeypatch.setattr(qdisc, "unavailable", lambda kind: "")
    monkeypatch.setattr(netlink, "mtu", lambda device: 1500)
    return roots


def test_netem_reads_back_and_leaves_nothing(kernel: dict[str, qdisc.Entry]) -> None:
    switch = netem.open_backend(("a",), {})
    asked = {"rate": 10**10, "delay": 10_000, "buffer": 100_001}
    for what, value in asked.items():
        switch.apply("a", what, value)
    assert {what: switch.read("a", what) for what in asked} == asked
    assert {what: switch.read("a", what) for what in ("ecn_threshold", "framing")} == {
        "ecn_threshold": "none",
        "framing": 0,
    }
    assert switch.read("", "fate") == "none"
    for what in asked:
        switch.apply("a", what, backend.UNSET[what])
    assert kernel == {}


def test_netem_shows_a_buffer_that_no_longer_fits(
    kernel: dict[str, qdisc.Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = netem.open_backend(("a",), {})
    switch.apply("a", "rate", 10**9)
    switch.apply("a", "buffer", 15_140)
    monkeypatch.setattr(netlink, "mtu", lambda device: 9000)
    assert switch.read("a", "buffer") == "11 packets"


def test_netem_refuses(kernel: dict[str, qdisc.Entry]) -> None:
    switch = netem.open_backend(("a",), {})
    with pytest.raises(ApplyError, match="port a, ecn_threshold: want 30000; netem can't mark at a queue length"):
        switch.apply("a", "ecn_threshold", 30_000)
    with pytest.raises(ApplyError, match="port a, rate: want 9; the kernel sets rates in whole bytes a second"):
        switch.apply("a", "rate", 9)
    kernel["a"] = qdisc.Entry(1, 0x80010000, qdisc.ROOT, 0, "fq", b"", {}, {})
    with pytest.raises(ApplyError, match="port a: want the kernel's default or our own root qdisc; got fq 8001:"):
        switch.apply("a", "rate", 10**9)


def test_fake_fails_where_it_is_told_to() -> None:
    switch = FakeBackend(("a", "b"), fail_at=3, cannot={"ecn_threshold": "no marks here"})
    assert switch.read("a", "delay") == 0
    switch.apply("a", "delay", 5)
    with pytest.raises(ApplyError, match=r"port b, rate: step 3 \(apply b rate 8\) fails as asked"):
        switch.apply("b", "rate", 8)
    assert switch.read("b", "rate") == "none"
    assert switch.read("a", "delay") == 5
    with pytest.raises(ApplyError, match="port a, ecn_threshold: no marks here"):
        switch.apply("a", "ecn_threshold", 1)
    with pytest.raises(ApplyError, match="port c, rate: want one of the ports a, b"):
        switch.read("c", "rate")
