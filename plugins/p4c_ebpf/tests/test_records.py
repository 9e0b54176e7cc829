# SPDX-License-Identifier: Apache-2.0
"""Stacks of headers of variable length, and a field of more bits than any number has."""

from __future__ import annotations

import pytest
from testctl_agent.switch.drivers.driver import Entry, Exact, Key

from plugins.p4c_ebpf.tests.documents import assign, field, refusal
from plugins.p4c_ebpf.tests.harness import EbpfTarget, Target
from plugins.p4c_ebpf.tests.program_files import committed

REST = bytes(range(100, 164))
WIDE = bytes(range(42)) + b"\x77"
STAY, PUSH, POP, COPY, CHANGE = range(5)
VALID = 0x80
"""What the program adds to the kind of the element that is chosen, if it is valid."""
DATA = (b"", b"abc", b"0123456789AB")


@pytest.fixture
def one(target: Target) -> EbpfTarget:
    return target("records")


def record(kind: int, data: bytes) -> bytes:
    return bytes([kind, len(data)]) + data


RECORDS = [record(at + 1, data) for at, data in enumerate(DATA)]


def packet(
    what: int, records: list[bytes], which: int = 0, kind: int = 0, wide: bytes = WIDE, many: int = 3, row: int = 0
) -> bytes:
    head = bytes([what, many]) + which.to_bytes(2, "big") + bytes([kind, row])
    return head + wide + b"".join(records) + REST


@pytest.mark.root
@pytest.mark.parametrize(
    ("what", "out", "kind"),
    [
        (STAY, RECORDS, VALID + 1),
        (PUSH, [bytes([9, 0]), RECORDS[0], RECORDS[1]], VALID + 9),
        (POP, [RECORDS[1], RECORDS[2]], VALID + 2),
        (COPY, [RECORDS[2], RECORDS[1], RECORDS[2]], VALID + 3),
    ],
)
def test_moved_with_their_lengths(one: EbpfTarget, what: int, out: list[bytes], kind: int) -> None:
    wide = WIDE * 2 if what == COPY else WIDE
    assert one.inject(1, packet(what, RECORDS)) == [(1, packet(what, out, kind=kind, wide=wide))]


@pytest.mark.root
@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_element_that_the_packet_chooses(one: EbpfTarget, which: int) -> None:
    assert one.inject(1, packet(STAY, RECORDS, which)) == [(1, packet(STAY, RECORDS, which, VALID + which + 1))]
    changed = [record(7, data) if at == which else RECORDS[at] for at, data in enumerate(DATA)]
    assert one.inject(1, packet(CHANGE, RECORDS, which)) == [(1, packet(CHANGE, changed, which, VALID + 7))]


@pytest.mark.root
@pytest.mark.parametrize("which", [3, 4, 255, 256, 257, 0xFFFF])
def test_no_such_element(one: EbpfTarget, which: int) -> None:
    """It is not valid, reads as 0 and keeps no assignment."""
    for what in (STAY, CHANGE):
        assert one.inject(1, packet(what, RECORDS, which)) == [(1, packet(what, RECORDS, which))]


@pytest.mark.root
def test_keys_of_an_element(one: EbpfTarget) -> None:
    """Its field and its validity: (kind, valid) gives the row."""
    for row, (kind, valid) in enumerate([(1, 1), (3, 1), (0, 0), (3, 0)], 1):
        keys: dict[str, Key] = dict(zip([key.name for key in one.compiled.layout.tables[0].keys],
                                        (Exact(kind), Exact(valid)), strict=True))  # fmt: skip
        one.driver.insert(Entry("rows", keys, "found", {"row": row}))
    for which, row, kind in ((0, 1, VALID + 1), (1, 0, VALID + 2), (2, 2, VALID + 3), (3, 3, 0), (256, 3, 0)):
        assert one.inject(1, packet(STAY, RECORDS, which)) == [(1, packet(STAY, RECORDS, which, kind, row=row))]


@pytest.mark.root
def test_a_full_stack(one: EbpfTarget) -> None:
    four = [*RECORDS, record(4, b"z")]
    assert one.inject(1, packet(STAY, four, many=4)) == [(1, packet(STAY, four, kind=VALID + 1, many=4))]


def test_the_wide_field_is_no_number() -> None:
    doc = committed("records")
    action = next(one for one in doc["actions"] if one["primitives"])
    action["primitives"].append(assign(field("order", "kind"), field("wide", "data")))
    assert refusal(doc).endswith("can't be translated: wide.data, which has 336 bits; want at most 128")
