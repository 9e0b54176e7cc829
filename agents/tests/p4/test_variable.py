# SPDX-License-Identifier: Apache-2.0
"""Fields of variable length: extracted, emitted, moved, copied, removed, compared, and covered by a checksum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testctl_agent.p4c_ebpf.translate import translate_text
from testctl_agent.spec.errors import ProgramError

from agents.tests.p4.documents import (
    Document,
    Json,
    Make,
    apply,
    assign,
    document,
    field,
    header,
    number,
    statement,
)
from agents.tests.p4.packets import checksum

REST = bytes(range(100, 164))
TYPES = {
    "x_t": [("words", 8), ("flag", 8), ("sum", 16)],
    "o_t": [("kind", 8), ("more", 8), ("options", -320)],
    "t_t": [("a", 16)],
}
HEADERS = {"x": "x_t", "o": "o_t", "t": "t_t", "other": "o_t"}
OPTIONS = bytes(range(1, 41))


def program(*ingress: Json) -> Document:
    """x, then o with 8 * x.words bits of options, then t are extracted; parser_error is added to x.flag."""
    flag = apply("&", apply("+", field("x", "flag"), field("standard_metadata", "parser_error")), number(255))
    doc = document(TYPES, HEADERS, [assign(field("x", "flag"), flag), *ingress], extracted=["x", "t"])
    bits = {"type": "expression", "value": apply("&", apply("*", field("x", "words"), number(8)), number(0xFFFFFFFF))}
    extract = statement("extract_VL", {"type": "regular", "value": "o"}, bits)
    doc["parsers"][0]["parse_states"][0]["parser_ops"].insert(1, extract)
    return doc


def packet(words: int, flag: int = 0, options: bytes = b"", total: int = 0) -> bytes:
    return bytes([words, flag]) + total.to_bytes(2, "big") + bytes([7, 8]) + options + bytes([5, 6]) + REST


@pytest.mark.root
def test_as_they_came(made: Make) -> None:
    one = made(program(assign(field("t", "a"), number(0x0506))))
    for size in (0, 1, 4, 20, 39, 40):
        sent = packet(size, 0, OPTIONS[:size])
        assert one.inject(1, sent) == [(1, sent)]
    too_long = packet(41, 0, OPTIONS)
    [(_, got)] = one.inject(1, too_long)
    assert got == packet(41, 4, OPTIONS)  # HeaderTooShort: it ends where x ends


@pytest.mark.root
@pytest.mark.parametrize("size", [0, 3, 40])
def test_removed_copied_and_compared(made: Make, size: int) -> None:
    sent, mine = packet(size, 0, OPTIONS[:size]), bytes([7, 8]) + OPTIONS[:size]
    one = made(program(statement("remove_header", header("o"))))
    assert one.inject(1, sent) == [(1, sent[:4] + sent[4 + len(mine) :])]
    same = apply("b2d", None, apply("==", header("other"), header("o")))
    one = made(program(statement("assign_header", header("other"), header("o")), assign(field("x", "flag"), same)))
    assert one.inject(1, sent) == [(1, bytes([size, 1, 0, 0]) + mine + bytes([5, 6]) + mine + REST)]
    options = [{"type": "field", "value": [name, "options"]} for name in ("other", "o")]
    one = made(program(statement("add_header", header("other")), statement("assign_VL", *options)))
    assert one.inject(1, sent) == [
        (1, bytes([size, 0, 0, 0]) + mine + bytes([5, 6]) + bytes(2) + OPTIONS[:size] + REST)
    ]


@pytest.mark.root
@pytest.mark.parametrize("size", [0, 4, 20, 40])
def test_a_checksum_covers_them(made: Make, size: int) -> None:
    """As that of IPv4 with options does."""
    doc = program()
    covered = [("x", "words"), ("x", "flag"), ("o", "kind"), ("o", "more"), ("o", "options")]
    doc["calculations"] = [{"name": "c", "id": 0, "algo": "csum16", "input": [
        {"type": "field", "value": list(one)} for one in covered
    ]}]  # fmt: skip
    doc["checksums"] = [{"name": "sum", "id": 0, "target": ["x", "sum"], "type": "generic", "calculation": "c",
                         "verify": False, "update": True}]  # fmt: skip
    [(_, got)] = made(doc).inject(1, packet(size, 3, OPTIONS[:size]))
    total = checksum(bytes([size, 3, 7, 8]) + OPTIONS[:size])
    assert got == packet(size, 3, OPTIONS[:size], total)


def refusal(doc: Document) -> str:
    with pytest.raises(ProgramError) as caught:
        translate_text(json.dumps(doc), Path("x.json"))
    return str(caught.value)


def test_refusals() -> None:
    options = {"type": "field", "value": ["o", "options"]}
    why = "the value of o.options, which has variable length"
    assert refusal(program(assign(field("x", "flag"), options))).endswith(f"can't be translated: {why}")
    doc = program()
    doc["header_types"][2]["fields"].append(["behind", 8, False])
    assert refusal(doc).endswith("can't be translated: header type o_t has a field behind one of variable length")
    doc = program()
    doc["parsers"][0]["parse_states"][0]["parser_ops"][1]["parameters"][0]["value"] = "x"
    why = "extracting x with a length: it has no field of variable length"
    assert refusal(doc).endswith(f"can't be translated: {why}")
    doc = program(statement("modify_field_with_hash_based_offset", field("x", "sum"), number(0),
                            {"type": "calculation", "value": "c"}, number(9)))  # fmt: skip
    doc["calculations"] = [{"name": "c", "id": 0, "algo": "crc16", "input": [options]}]
    assert refusal(doc).endswith("can't be translated: a hash over a field of variable length")
