# SPDX-License-Identifier: Apache-2.0
"""Constructs that p4c writes seldom, in documents made here: nested values, copied metadata, empty and many headers."""

from __future__ import annotations

import pytest
from testctl_agent.spec.errors import DriverError

from plugins.p4c_ebpf.tests.documents import (
    Json,
    Make,
    apply,
    assign,
    document,
    element,
    field,
    header,
    number,
    statement,
)

pytestmark = pytest.mark.root

REST = bytes(range(64))
BYTES = {"x_t": [(name, 8) for name in "abcr"]}


def saturated(op: str, a: str, b: str) -> Json:
    return apply("usat_cast", apply(op, field("x", a), field("x", b)), number(8))


@pytest.mark.parametrize(
    ("op", "want"), [("+", 255 + 7), ("|", 255 | 7), ("^", 255 ^ 7), ("-", 255 - 7), ("&", 255 & 7), ("==", 0)]
)
def test_a_saturated_value_as_an_operand(made: Make, op: str, want: int) -> None:
    """h.x.r = (h.x.a |+| h.x.b) OP h.x.c"""
    value = apply(op, saturated("+", "a", "b"), field("x", "c"))
    whole = apply("b2d", None, value) if op == "==" else apply("&", value, number(255))
    one = made(document(BYTES, {"x": "x_t"}, [assign(field("x", "r"), whole)]))
    assert one.inject(1, bytes([200, 100, 7, 0]) + REST) == [(1, bytes([200, 100, 7, want & 255]) + REST)]


def test_zero_shifted_by_more_than_a_word(made: Make) -> None:
    """h.x.r = (bit<8>)(((bit<128>)(h.x.a & 0) << 81) >> 3) + (bit<8>)((int<16>)-1 << 3)"""
    zero = apply("<<", apply("&", field("x", "a"), number(0)), number(81))
    value = apply("+", apply(">>", zero, number(3)), apply("<<", number(-1), number(3)))
    one = made(document(BYTES, {"x": "x_t"}, [assign(field("x", "r"), apply("&", value, number(255)))]))
    assert one.inject(1, bytes([9, 0, 0, 0]) + REST) == [(1, bytes([9, 0, 0, 256 - 8]) + REST)]


def test_a_stack_element_as_an_operand(made: Make) -> None:
    """h.x.r = h.k[h.x.a].b + (h.k[h.x.b].b ^ h.x.c)"""
    stack = [f"k[{at}]" for at in range(3)]
    value = apply("+", element("k", field("x", "a"), 0), apply("^", element("k", field("x", "b"), 0), field("x", "c")))
    doc = document(
        BYTES | {"k_t": [("b", 8)]},
        {"x": "x_t"} | dict.fromkeys(stack, "k_t"),
        [assign(field("x", "r"), apply("&", value, number(255)))],
        stacks={"k": stack},
    )
    one = made(doc)
    for a, b in ((0, 1), (2, 2), (1, 7)):
        cells = [11, 22, 33, 0]
        want = cells[a] + (cells[min(b, 3)] ^ 5) & 255
        rest = bytes(cells[:3]) + REST
        assert one.inject(1, bytes([a, b, 5, 0]) + rest) == [(1, bytes([a, b, 5, want]) + rest)]


def test_an_index_of_few_bits(made: Make) -> None:
    """meta.at = h.x.a[1:0]; h.x.r = h.k[meta.at].b, twice: the verifier knows no more than the test of its bound."""
    stack, at = [f"k[{at}]" for at in range(4)], field("meta", "at")
    doc = document(
        BYTES | {"k_t": [("z", 8), ("b", 24), ("c", 12), ("d", 4)], "meta_t": [("at", 2)]},
        {"x": "x_t"} | dict.fromkeys(stack, "k_t") | {"meta": "meta_t"},
        [
            assign(at, apply("&", field("x", "a"), number(3))),
            assign(field("x", "r"), apply("&", element("k", at, 2), number(255))),
            assign(element("k", at, 2), apply("+", element("k", at, 2), field("x", "b"))),
        ],
        stacks={"k": stack},
        metadata=["meta"],
    )
    one = made(doc)
    for index in range(4):
        cells = [bytes([9, 9, 9, 9, 16 * at + 1, 0x25]) for at in range(4)]
        want = [cell if at != index else bytes([9, 9, 9, 9, 16 * at + 1, 0x55]) for at, cell in enumerate(cells)]
        sent = bytes([index, 3, 0, 0]) + b"".join(cells) + REST
        assert one.inject(1, sent) == [(1, bytes([index, 3, 0, 0x12]) + b"".join(want) + REST)]


def test_a_copy_of_standard_metadata_is_whole(made: Make) -> None:
    """c = standard_metadata; h.x.c = (bit<8>)c.packet_length: the field is named on one side only."""
    doc = document(BYTES, {"x": "x_t", "c": "standard_metadata"}, metadata=["c"], ingress=[
        statement("assign_header", header("c"), header("standard_metadata")),
        assign(field("x", "r"), field("c", "packet_length")),
    ])  # fmt: skip
    assert made(doc).inject(1, bytes(4) + REST) == [(1, bytes([0, 0, 0, 68]) + REST)]


def test_an_empty_header_can_be_extracted_and_emitted(made: Make) -> None:
    """header z_t { }: only its validity counts."""
    valid = apply("b2d", None, apply("valid", None, header("z")))
    doc = document(
        BYTES | {"z_t": []}, {"x": "x_t", "z": "z_t", "y": "z_t"},
        [assign(field("x", "r"), valid), statement("add_header", header("y"))],
    )  # fmt: skip
    assert made(doc).inject(1, bytes(4) + REST) == [(1, bytes([0, 0, 0, 1]) + REST)]
    doc = document(BYTES | {"z_t": []}, {"x": "x_t", "z": "z_t"}, [assign(field("x", "r"), valid)], extracted=["x"])
    assert made(doc).inject(1, bytes([0, 0, 0, 9]) + REST) == [(1, bytes(4) + REST)]


@pytest.mark.parametrize("how", ["remove", "copy", "add"])
@pytest.mark.parametrize("many", [62])
def test_many_headers_that_come_and_go(made: Make, how: str, many: int) -> None:
    """The verifier's work grows with the headers, not with the sets of them that can be valid."""
    names = [f"b{at}" for at in range(many)]
    if how == "remove":
        changes = [statement("remove_header", header(name)) for name in names[::2]]
    elif how == "copy":
        changes = [statement("assign_header", header(names[at]), header(names[at - 1])) for at in range(2, many)]
    else:
        changes = [statement("add_header", header(name)) for name in names[1:]]
    doc = document(
        BYTES | {"b_t": [("v", 32)]}, {"x": "x_t"} | dict.fromkeys(names, "b_t"), changes,
        extracted=["x", "b0"] if how == "add" else None,
    )  # fmt: skip
    inside = b"".join(at.to_bytes(4, "big") for at in range(many))
    want = {
        "remove": b"".join(inside[4 * at : 4 * at + 4] for at in range(1, many, 2)),
        "copy": inside[:8] + inside[4:8] * (many - 2),
        "add": inside[:4] + bytes(4 * (many - 1)),
    }[how]
    sent = inside[:4] if how == "add" else inside
    assert made(doc).inject(1, bytes([9, 8, 7, 6]) + sent + REST) == [(1, bytes([9, 8, 7, 6]) + want + REST)]


def test_headers_that_come_and_go_many_times(made: Make) -> None:
    """8 headers, each removed, added, written and copied 6 times: no statement doubles what the verifier follows."""
    names = [f"b{at}" for at in range(8)]
    changes: list[Json] = []
    for round_ in range(6):
        for at, name in enumerate(names):
            changes += [
                statement("assign_header", header(name), header(names[(at + 1) % 8])),
                assign(field(name, "v"), number(round_)),
                statement("remove_header", header(names[(at + 3) % 8])),
                statement("add_header", header(names[(at + 5) % 8])),
                assign(field(names[(at + 5) % 8], "v"), number(16 * round_ + at)),
            ]
    doc = document(BYTES | {"b_t": [("v", 32)]}, {"x": "x_t"} | dict.fromkeys(names, "b_t"), changes)
    cells: list[int | None] = list(range(8))
    for round_ in range(6):
        for at in range(8):
            cells[at] = None if cells[(at + 1) % 8] is None else round_
            cells[(at + 3) % 8] = None
            cells[(at + 5) % 8] = 16 * round_ + at
    packed = [b"".join(v.to_bytes(4, "big") for v in some if v is not None) for some in (range(8), cells)]
    assert made(doc).inject(1, bytes([1, 2, 3, 4]) + packed[0] + REST) == [(1, bytes([1, 2, 3, 4]) + packed[1] + REST)]


def test_many_bytes_of_headers(made: Make) -> None:
    """More than clang sets or copies inline at once, and a copy of them for each port of a group."""
    names = [f"b{at}" for at in range(40)]
    changes = [assign(field("b39", "d"), number(7)), assign(field("standard_metadata", "mcast_grp"), number(9))]
    types = BYTES | {"b_t": [(name, 64) for name in "abcd"]}
    one = made(document(types, {"x": "x_t"} | dict.fromkeys(names, "b_t"), changes))
    one.driver.multicast(9, [2, 3])
    inside = bytes(at * 7 % 251 for at in range(40 * 32))
    want = bytes([1, 2, 3, 4]) + inside[:-8] + bytes(7) + b"\x07" + REST
    assert one.inject(1, bytes([1, 2, 3, 4]) + inside + REST) == [(2, want), (3, want)]


def test_each_copy_has_its_replication_id(made: Make) -> None:
    """standard_metadata.egress_rid; 0 where no instances are given."""
    doc = document(
        BYTES, {"x": "x_t"}, [assign(field("standard_metadata", "mcast_grp"), number(9))],
        [assign(field("x", "r"), apply("&", field("standard_metadata", "egress_rid"), number(255)))],
    )  # fmt: skip
    one, packet = made(doc), bytes([1, 2, 3, 99]) + REST
    one.driver.multicast(9, [2, 3, 2], [7, 400, 8])
    assert one.inject(1, packet) == [
        (port, bytes([1, 2, 3, rid]) + REST) for port, rid in ((2, 7), (3, 400 & 255), (2, 8))
    ]
    one.driver.multicast(9, [2, 3])
    assert one.inject(1, packet) == [(port, bytes([1, 2, 3, 0]) + REST) for port in (2, 3)]
    with pytest.raises(DriverError, match=r"^multicast group 9: want 2 instances of 16 bits; got \[1\]$"):
        one.driver.multicast(9, [2, 3], [1])
