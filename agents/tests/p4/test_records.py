# SPDX-License-Identifier: Apache-2.0
"""Stacks of headers of variable length, and a field of more bits than any number has."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from testctl_agent.p4c_ebpf.translate import translate_text
from testctl_agent.spec.errors import ProgramError

from agents.tests.p4.conftest import PROGRAMS
from agents.tests.p4.documents import assign, field
from agents.tests.p4.harness import EbpfTarget

REST = bytes(range(100, 164))
WIDE = bytes(range(42)) + b"\x77"
STAY, PUSH, POP, COPY, CHANGE = range(5)
DATA = (b"", b"abc", b"0123456789AB")


@pytest.fixture
def one(target: Callable[[str], EbpfTarget]) -> EbpfTarget:
    return target("records")


def record(kind: int, data: bytes) -> bytes:
    return bytes([kind, len(data)]) + data


RECORDS = [record(at + 1, data) for at, data in enumerate(DATA)]


def packet(what: int, records: list[bytes], which: int = 0, kind: int = 0, wide: bytes = WIDE, many: int = 3) -> bytes:
    return bytes([what, many, which, kind]) + wide + b"".join(records) + REST


@pytest.mark.root
@pytest.mark.parametrize(
    ("what", "out", "kind"),
    [
        (STAY, RECORDS, 1),
        (PUSH, [bytes([9, 0]), RECORDS[0], RECORDS[1]], 9),
        (POP, [RECORDS[1], RECORDS[2]], 2),
        (COPY, [RECORDS[2], RECORDS[1], RECORDS[2]], 3),
    ],
)
def test_moved_with_their_lengths(one: EbpfTarget, what: int, out: list[bytes], kind: int) -> None:
    wide = WIDE * 2 if what == COPY else WIDE
    assert one.inject(1, packet(what, RECORDS)) == [(1, packet(what, out, kind=kind, wide=wide))]


@pytest.mark.root
@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_element_that_the_packet_chooses(one: EbpfTarget, which: int) -> None:
    assert one.inject(1, packet(STAY, RECORDS, which)) == [(1, packet(STAY, RECORDS, which, which + 1))]
    changed = [record(7, data) if at == which else RECORDS[at] for at, data in enumerate(DATA)]
    assert one.inject(1, packet(CHANGE, RECORDS, which)) == [(1, packet(CHANGE, changed, which, 7))]


@pytest.mark.root
def test_a_full_stack(one: EbpfTarget) -> None:
    four = [*RECORDS, record(4, b"z")]
    assert one.inject(1, packet(STAY, four, many=4)) == [(1, packet(STAY, four, kind=1, many=4))]


def test_the_wide_field_is_no_number() -> None:
    doc = json.loads((PROGRAMS / "records.json").read_text())
    action = next(one for one in doc["actions"] if one["primitives"])
    action["primitives"].append(assign(field("order", "kind"), field("wide", "data")))
    with pytest.raises(ProgramError, match=r"can't be translated: wide.data, which has 336 bits; want at most 128$"):
        translate_text(json.dumps(doc), PROGRAMS / "records.json")
