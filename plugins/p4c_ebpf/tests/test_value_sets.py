# SPDX-License-Identifier: Apache-2.0
"""Parser value sets: empty at first, filled, emptied; of one field and of several."""

from __future__ import annotations

import pytest
from testctl_agent.spec.errors import DriverError

from plugins.p4c_ebpf.tests.documents import refusal
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import ethernet
from plugins.p4c_ebpf.tests.program_files import committed

REST = bytes(range(64))
FLOW = 0x1111


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("valuesets")


def hits(one: EbpfTarget, *headers: bytes) -> list[int]:
    """What the program says was hit: the outer type, the inner one, the flow."""
    body = b"".join(headers) + REST
    [(port, out)] = one.inject(1, bytes(3) + body)
    assert (port, out[3:]) == (1, body)
    return list(out[:3])


def flow(src: int, kind: int, port: int) -> bytes:
    return src.to_bytes(8, "big") + (kind << 12 | port).to_bytes(2, "big") + bytes(6)


@pytest.mark.root
def test_one_field(one: EbpfTarget) -> None:
    def found(outer: int, inner: int) -> list[int]:
        return hits(one, ethernet(outer), ethernet(inner))[:2]

    assert found(0x2222, 0x2222) == [0, 0]
    one.driver.value_set("tunnels", [(0x2222,), (0x3333,)])
    assert [found(0x2222, 0x3333), found(0x3333, 0x4444), found(0x4444, 0x2222)] == [[1, 1], [1, 0], [0, 0]]
    one.driver.value_set("tunnels", [(0x4444,)])
    assert [found(0x2222, 0x3333), found(0x4444, 0x4444)] == [[0, 0], [1, 1]]
    one.driver.value_set("tunnels", [(at,) for at in (0x2222, 0x3333, 0x4444, 0x5555)])
    one.driver.value_set("tunnels", [(at,) for at in (0x6666, 0x7777, 0x8888, 0x9999)])
    assert [found(0x5555, 0x5555), found(0x9999, 0x6666)] == [[0, 0], [1, 1]]
    one.driver.value_set("tunnels", [])
    assert found(0x9999, 0x6666) == [0, 0]


@pytest.mark.root
def test_three_fields_of_80_bits(one: EbpfTarget) -> None:
    member = (0xFEDCBA9876543210, 0x9, 0x234)
    one.driver.value_set("flows", [member, (1, 2, 3)])
    assert hits(one, ethernet(FLOW), flow(*member)) == [0, 0, 1]
    assert hits(one, ethernet(FLOW), flow(1, 2, 3)) == [0, 0, 1]
    for at in range(3):
        other = tuple(value ^ (at == place) for place, value in enumerate(member))
        assert hits(one, ethernet(FLOW), flow(*other)) == [0, 0, 0]
    one.driver.value_set("tunnels", [(0x2222,)])
    assert hits(one, ethernet(0x2222), ethernet(FLOW), flow(*member)) == [1, 0, 1]


@pytest.mark.root
def test_refusals(one: EbpfTarget) -> None:
    for said, name, members in (
        (r"value set P.tunnels: want at most 4 members; got 5", "tunnels", [(at,) for at in range(5)]),
        (r"value set P.tunnels: want fields of \[16\] bits; got \[65536\]", "tunnels", [(65536,)]),
        (r"value set P.flows: want fields of \[64, 4, 12\] bits; got \[1, 2\]", "flows", [(1, 2)]),
    ):
        with pytest.raises(DriverError, match=f"^{said}$"):
            one.driver.value_set(name, members)


def test_what_is_not_translated() -> None:
    whole = committed("valuesets")
    whole["parse_vsets"][0]["compressed_bitwidth"] = 17
    assert refusal(whole).endswith(
        "can't be translated: the value set P.tunnels with a mask, or with fields of other widths"
    )
    whole["parse_vsets"][0]["compressed_bitwidth"] = 129
    assert refusal(whole).endswith("can't be translated: 129 bits of the value set P.tunnels; want at most 128")
    whole["parse_vsets"] = []
    assert refusal(whole).endswith("no value set 'P.tunnels'")
