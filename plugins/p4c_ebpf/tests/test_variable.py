# SPDX-License-Identifier: Apache-2.0
"""Fields of variable length: extracted, emitted, moved, copied, removed, compared, and covered by a checksum."""

from __future__ import annotations

import pytest

from plugins.p4c_ebpf.tests.documents import Document, Json, apply, assign, field, number, refusal, statement
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.packets import IPV4, checksum, ethernet, ipv4, ports
from plugins.p4c_ebpf.tests.program_files import committed

OPTIONS = bytes(range(1, 41))
REST = bytes(range(100, 164))
STAY, REMOVE, COPY, COPY_FIELD, COMPARE = range(5)
FINE, SAME, TOO_LONG, NO_BYTES, CUT = range(5)


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("options")


def record(what: int, bits: int, rest: bytes, result: int = FINE, before: bytes = b"") -> bytes:
    """A packet of the program's own protocol: a length in bits, and so many; `before` is what it puts there."""
    return ethernet(0x88B5) + bytes([what, result]) + before + bits.to_bytes(2, "big") + rest


def ip(options: int) -> bytes:
    """A header with right checksum and so many bytes of options."""
    plain = ipv4(protocol=6)
    head = bytes([0x40 + (20 + options) // 4]) + plain[1:10] + bytes(2) + plain[12:] + OPTIONS[:options]
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]


def tcp(options: int) -> bytes:
    return ports(80, 81) + bytes(8) + bytes([(20 + options) // 4 << 4, 0x10]) + bytes(6) + OPTIONS[::-1][:options]


@pytest.mark.root
@pytest.mark.parametrize("size", [0, 1, 4, 20, 39, 40])
def test_as_they_came(one: EbpfTarget, size: int) -> None:
    sent = record(STAY, 8 * size, OPTIONS[:size] + REST)
    assert one.inject(1, sent) == [(1, sent)]


@pytest.mark.root
def test_lengths_that_can_not_be(one: EbpfTarget) -> None:
    """P4-16, section 12.8.2; the packet goes on, with what was extracted before.

    A header that neither the packet has nor its field can hold is PacketTooShort: that is checked first.
    """
    for bits, rest, why in ((41 * 8, OPTIONS + REST, TOO_LONG), (321, OPTIONS + REST, NO_BYTES), (4, REST, NO_BYTES),
                            (0xFFFF, REST, NO_BYTES), (320, OPTIONS[:39], CUT), (41 * 8, OPTIONS, CUT),
                            (41 * 8, OPTIONS + b"!", TOO_LONG), (0xFFF8, REST, CUT)):  # fmt: skip
        assert one.inject(1, record(STAY, bits, rest)) == [(1, record(STAY, bits, rest, why))]


@pytest.mark.root
@pytest.mark.parametrize("size", [0, 3, 6, 40])
def test_removed_copied_and_compared(one: EbpfTarget, size: int) -> None:
    mine = OPTIONS[:size]
    head = (8 * size).to_bytes(2, "big") + mine
    assert one.inject(1, record(REMOVE, 8 * size, mine + REST)) == [(1, ethernet(0x88B5) + bytes([REMOVE, 0]) + REST)]
    both = record(COPY, 8 * size, mine + REST, SAME, head)
    assert one.inject(1, record(COPY, 8 * size, mine + REST)) == [(1, both)]
    copied = record(COPY_FIELD, 8 * size, mine + REST, FINE, bytes([0, 7]) + mine)
    assert one.inject(1, record(COPY_FIELD, 8 * size, mine + REST)) == [(1, copied)]


@pytest.mark.root
@pytest.mark.parametrize("size", [1, 6, 40])
def test_compared(one: EbpfTarget, size: int) -> None:
    """Two are the same if each byte and the length are."""
    first = OPTIONS[:size]
    for second in (first, *(first[:at] + b"\0" + first[at + 1 :] for at in range(size)), first[:-1]):
        head = (8 * len(second)).to_bytes(2, "big") + second
        want = record(COMPARE, 8 * size, first + REST, SAME if first == second else FINE, head)
        assert one.inject(1, record(COMPARE, 8 * size, first + head + REST)) == [(1, want)]


@pytest.mark.root
@pytest.mark.parametrize("options", [0, 4, 20, 40])
@pytest.mark.parametrize("above", [0, 12, 40])
def test_ipv4_and_tcp(one: EbpfTarget, options: int, above: int) -> None:
    """IPv4's checksum covers its options, and is right when they are removed; TCP's stay behind them."""
    for what, left in ((STAY, options), (REMOVE, 0)):
        order = ethernet(IPV4) + bytes([what, FINE])
        sent = bytearray(order + ip(options) + tcp(above) + REST)
        sent[26:28] = b"\x12\x34"
        assert one.inject(1, bytes(sent)) == [(1, order + ip(left) + tcp(above) + REST)]


@pytest.mark.root
def test_a_tcp_header_of_less_than_its_length_is_not_extracted(one: EbpfTarget) -> None:
    """A data offset below 5 gives a length below 0, so one far beyond the packet's."""
    short = tcp(0)[:12] + b"\x40" + tcp(0)[13:]
    order = ethernet(IPV4) + bytes([STAY, FINE])
    want = ethernet(IPV4) + bytes([STAY, CUT]) + ip(4) + short + REST
    assert one.inject(1, order + ip(4) + short + REST) == [(1, want)]


def with_statement(one: Json) -> Document:
    """The program with one statement more in the action that copies the header."""
    made = committed("options")
    next(each for each in made["actions"] if each["primitives"])["primitives"].append(one)
    return made


def test_refusals() -> None:
    data = field("bytes", "data")
    why = "the value of bytes.data, which has variable length"
    assert refusal(with_statement(assign(field("order", "what"), data))).endswith(f"can't be translated: {why}")
    doc = committed("options")
    next(one for one in doc["header_types"] if one["name"] == "bytes_t")["fields"].append(["behind", 8, False])
    assert refusal(doc).endswith("can't be translated: header type bytes_t has a field behind one of variable length")
    doc = committed("options")
    extracts = [op for state in doc["parsers"][0]["parse_states"] for op in state["parser_ops"]]
    next(op for op in extracts if op["op"] == "extract_VL")["parameters"][0]["value"] = "order"
    why = "extracting order with a length: it has no field of variable length"
    assert refusal(doc).endswith(f"can't be translated: {why}")
    doc = with_statement(statement("modify_field_with_hash_based_offset", field("order", "what"), number(0),
                                   {"type": "calculation", "value": "c"}, number(9)))  # fmt: skip
    doc["calculations"].append({"name": "c", "id": 9, "algo": "crc16", "input": [data]})
    assert refusal(doc).endswith("can't be translated: a hash over a field of variable length")
    doc = committed("options")
    doc["pipelines"][0]["conditionals"][0]["expression"] = apply("==", data, field("tcp", "options"))
    why = "comparing fields of variable length of two header types"
    assert refusal(doc).endswith(f"can't be translated: {why}")
