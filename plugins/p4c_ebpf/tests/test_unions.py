# SPDX-License-Identifier: Apache-2.0
"""Header unions: at most one member is valid, however it became so; P4-16, section 8.20."""

from __future__ import annotations

import copy

import pytest

from plugins.p4c_ebpf.tests.documents import refusal
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.program_files import committed

REST = bytes(range(100, 164))
STAY, SHORTEN, LENGTHEN, REMOVE, REMOVE_OTHER, COPY, COPY_NOTHING, CHANGE_ITEM = range(8)
NONE, SHORT, LONG, BOTH = 0, 4, 6, 10
SHORT_BYTES, LONG_BYTES = bytes(range(10, 14)), bytes(range(20, 29))
SHORT_VALID, LONG_VALID = 3, 5
"""What the program says of the union and its members: 1, 2 and 4."""


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("unions")


def packet(what: int, kind: int, body: bytes, items: int = 0, valid: int = 0) -> bytes:
    return bytes([what, kind, items, valid]) + body + REST


@pytest.mark.root
@pytest.mark.parametrize(
    ("what", "kind", "out", "valid"),
    [
        (STAY, SHORT, SHORT_BYTES, SHORT_VALID),
        (STAY, LONG, LONG_BYTES, LONG_VALID),
        (STAY, NONE, b"", 0),
        (SHORTEN, LONG, bytes([1, 2, 3, 4]), SHORT_VALID),
        (SHORTEN, SHORT, bytes([1, 2, 3, 4]), SHORT_VALID),
        (SHORTEN, NONE, bytes([1, 2, 3, 4]), SHORT_VALID),
        (LENGTHEN, SHORT, bytes(8) + b"\x05", LONG_VALID),
        (LENGTHEN, LONG, LONG_BYTES[:8] + b"\x05", LONG_VALID),
        (LENGTHEN, NONE, bytes(8) + b"\x05", LONG_VALID),
        (REMOVE, SHORT, b"", 0),
        (REMOVE, LONG, b"", 0),
        (REMOVE_OTHER, LONG, LONG_BYTES, LONG_VALID),
        (REMOVE_OTHER, SHORT, b"", 0),
        (COPY, SHORT, SHORT_BYTES * 2, SHORT_VALID),
        (COPY, LONG, LONG_BYTES * 2, LONG_VALID),
        (COPY, NONE, b"", 0),
        (COPY_NOTHING, LONG, LONG_BYTES, LONG_VALID),
        (COPY_NOTHING, SHORT, b"", 0),
    ],
)
def test_one_of_two(one: EbpfTarget, what: int, kind: int, out: bytes, valid: int) -> None:
    body = {SHORT: SHORT_BYTES, LONG: LONG_BYTES, NONE: b""}[kind]
    assert one.inject(1, packet(what, kind, body)) == [(1, packet(what, kind, out, 0, valid))]


@pytest.mark.root
def test_the_last_that_is_extracted_stays(one: EbpfTarget) -> None:
    sent = packet(STAY, BOTH, SHORT_BYTES + LONG_BYTES)
    assert one.inject(1, sent) == [(1, packet(STAY, BOTH, LONG_BYTES, 0, LONG_VALID))]


@pytest.mark.root
@pytest.mark.parametrize("items", [[], [b"\x01\x05"], [b"\x02\x05\x06"], [b"\x02\x05\x06", b"\x01\x07", b"\x02ab"]])
def test_a_stack(one: EbpfTarget, items: list[bytes]) -> None:
    sent = packet(STAY, SHORT, SHORT_BYTES + b"".join(items), len(items))
    assert one.inject(1, sent) == [(1, packet(STAY, SHORT, SHORT_BYTES + b"".join(items), len(items), SHORT_VALID))]


@pytest.mark.root
def test_an_item_changes_its_size(one: EbpfTarget) -> None:
    for items, want in (
        (b"\x01\x02" b"\x01\x03" b"\x02\x04\x05", b"\x01\x09" b"\x02\x07\x08" b"\x02\x04\x05"),
        (b"\x02\x02\x03" b"\x02\x03\x04" b"\x01\x05", b"\x02\x02\x03" b"\x02\x03\x04" b"\x01\x05"),
    ):  # fmt: skip
        assert one.inject(1, packet(CHANGE_ITEM, NONE, items, 3)) == [(1, packet(CHANGE_ITEM, NONE, want, 3))]


@pytest.mark.root
def test_a_full_stack_ends_the_parser(one: EbpfTarget) -> None:
    sent = packet(STAY, NONE, b"\x01\x02" * 4, 4)
    assert one.inject(1, sent) == [(1, sent)]


def test_broken_documents() -> None:
    """An element of a stack that is not there, a member that is not there, a type that is not there."""
    whole = committed("unions")
    broken = copy.deepcopy(whole)
    broken["header_unions"][0]["header_ids"] = [3]
    assert refusal(broken) == "x.json: header_unions[0]: header union address: want 2 headers"
    broken["header_unions"][0]["union_type"] = "z"
    assert refusal(broken) == "x.json: header_unions[0]: header union address: no type 'z'"
    broken = copy.deepcopy(whole)
    broken["header_union_stacks"][0]["header_union_ids"] = [9]
    assert refusal(broken) == "x.json: header_union_stacks[0]: want a stack of 1 header unions"
    broken = copy.deepcopy(whole)
    extract = next(
        op for one in broken["parsers"][0]["parse_states"] for op in one["parser_ops"]
        if op["parameters"][0]["type"] == "union_stack"
    )  # fmt: skip
    extract["parameters"][0]["value"] = ["items", "z"]
    assert refusal(broken).endswith("header union items[0] has no member 'z'")
    extract["parameters"][0]["value"] = ["z", "byte"]
    assert refusal(broken).endswith("no stack of header unions 'z'")
